"""What tests of the explorer share."""

import pytest

from figures.explore.work.jobs import Jobs


@pytest.fixture(scope="module")
def jobs():
    """Jobs on two threads."""
    jobs = Jobs(threads=2)
    yield jobs
    jobs.close()
