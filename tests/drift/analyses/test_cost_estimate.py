"""The cost that an analysis tells before it starts."""

import numpy as np
import pytest
import xarray as xr

from drift.analyses.cost_estimate import Effort, effort
from drift.runs import cache
from tests.tiny import trained


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs"))


def test_effort_grows_with_trainings_and_shrinks_with_workers(run):
    one = effort(run, trainings=6, forwards=0, memory=2**20)
    assert one.seconds == pytest.approx(2 * float(np.nanmedian(run.metrics().seconds)))
    assert effort(run, trainings=6, forwards=0, memory=0, workers=2).seconds == pytest.approx(one.seconds / 2)
    assert effort(run, trainings=0, forwards=1000, memory=0).seconds > 0


def test_effort_reads_as_one_line():
    text = str(Effort(trainings=12, forwards=3_400_000, memory=5 * 2**20, seconds=150.0))
    assert text == "12 trainings, 3.4e+06 forward passes, 5 MiB, about 2 min"
    assert str(Effort(1, 1, 0, float("nan"))).endswith("unknown time")


def slow(run, *, trainings: int = 2) -> xr.Dataset:
    return xr.Dataset(attrs={"trainings": trainings})


def slow_effort(run, *, trainings: int = 2) -> str:
    return f"{trainings} trainings"


def test_cached_announces_the_cost_once(run):
    heard: list[str] = []
    told = run.with_progress(None, heard.append)
    for _ in range(2):
        assert cache.cached(told, slow, {"trainings": 5}).attrs["trainings"] == 5
    assert heard == [f"slow of {run.name}: 5 trainings"]
