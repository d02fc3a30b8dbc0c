"""The page of the runs that tests share, opened in a real browser."""

import packed_pages
import pytest


@pytest.fixture(scope="module")
def text(whole_report):
    return whole_report.read_text()


@pytest.fixture(scope="module")
def content(text):
    return packed_pages.content(text, "scene")


@pytest.fixture
def opened(browser, whole_report):
    """Opens the page in a window of its own, at an address; it may neither complain nor ask for anything."""
    pages, errors, requests = [], [], []

    def go(hash_="", path=whole_report, **window):
        page = browser.new_page(**{"viewport": {"width": 1400, "height": 900}, "reduced_motion": "reduce"} | window)
        page.on("pageerror", lambda problem: errors.append(str(problem)))
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        page.on("request", lambda request: requests.append(request.url.partition("#")[0]))
        page.goto(path.as_uri() + hash_)
        page.wait_for_selector("#stage .picture")
        pages.append((page, path))
        return page

    yield go
    assert errors == []
    assert [url for url in requests if not url.startswith("blob:")] == [path.as_uri() for _, path in pages]
    for page, _ in pages:
        page.close()
