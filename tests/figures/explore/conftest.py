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
