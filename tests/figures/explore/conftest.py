"""What tests of surveys share."""

import pytest

from figures.explore.plane import surveys
from figures.explore.work.jobs import Jobs


@pytest.fixture(scope="module")
def jobs():
    """Jobs on two threads."""
    jobs = Jobs(threads=2)
    yield jobs
    jobs.close()


@pytest.fixture
def no_survey_remembered():
    """Every survey is evaluated anew."""
    surveys._FINISHED.clear()
