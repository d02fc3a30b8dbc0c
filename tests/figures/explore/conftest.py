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
