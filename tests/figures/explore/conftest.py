"""What tests of the explorer share."""

import pytest

from figures.explore.work.jobs import Jobs


@pytest.fixture(scope="module")
def jobs():
    """Jobs on two threads."""
    jobs = Jobs(threads=2)
    yield jobs
    jobs.close()


@pytest.fixture(scope="module")
def address(runs):
    """Of a server of `fedscape explore` on the folder of the runs of the test's file."""
    from exploring import exploring  # needs tornado

    with exploring(runs[0].folder.parent) as started:
        yield started


@pytest.fixture
def page(browser, address):
    """A page of a desktop on the map of round 2, that has ended its work."""
    from exploring import idle

    opened = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
    opened.set_default_timeout(60_000)
    opened.goto(address + "#round=2&view=map")
    idle(opened)
    yield opened
    opened.close()


@pytest.fixture
def opened(browser, address):
    """Opens an address of the page in a window; it may not complain, nor ask elsewhere."""
    from exploring import idle

    pages, errors, requests = [], [], []

    def go(hash_=""):
        page = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda problem: errors.append(str(problem)))
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address + hash_)
        idle(page)
        pages.append(page)
        return page

    yield go
    assert errors == []
    assert {url.split("/")[2] for url in requests if url.startswith("http")} == {address.split("/")[2]}
    for page in pages:
        page.close()
