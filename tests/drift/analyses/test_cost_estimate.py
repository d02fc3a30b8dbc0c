"""The cost that an analysis tells before it starts."""

import itertools

import numpy as np
import pytest
import xarray as xr

import drift
from drift.analyses.cost_estimate import Effort, effort
from drift.analyses.counterfactual import update_causes
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


@pytest.mark.parametrize(
    ("settings", "trainings"), [((), 1), (("clients.late=2",), 2), (("clients.late=2", "clients.work=[0.5,1.0]"), 3)]
)
def test_the_causes_of_an_update_train_as_often_as_their_estimate_says(settings, trainings, tmp_path, monkeypatch):
    run, count = trained(tmp_path, "keep.clients=all", "local.epochs=4", *settings), itertools.count()
    real = update_causes._update
    monkeypatch.setattr(update_causes, "_update", lambda *client: (next(count), real(*client))[1])
    estimated = cache.estimated_effort(run, drift.update_causes, {"rounds": [2]}).trainings
    drift.update_causes(run, rounds=[2])
    assert estimated == 3 * trainings >= next(count) > 3 * (trainings - 1)


@pytest.mark.parametrize("analysis", [drift.update_causes, drift.what_if, drift.best_weights])
def test_of_a_run_of_another_program_the_work_is_known_and_its_time_is_not(analysis, run, tmp_path):
    """Its settings are not known, so that its recorded seconds say nothing of a training or a sample."""
    source = trained(tmp_path / "source", "keep.clients=all", "keep.globals=all")
    recorder = drift.Recorder(tmp_path / "run")
    for record in map(source.round, source.rounds()):
        models = zip(record.ids.tolist(), map(source.layout.named, record.clients), strict=True)
        start, end = map(source.layout.named, (record.start, record.end))
        recorder.round(start=start, clients={k: (model, 5) for k, model in models}, end=end, metrics=record.metrics)
    recorded = drift.open(recorder.folder, task=source.task)
    expected, stated = (cache.estimated_effort(one, analysis, {}) for one in (source, recorded))
    assert stated.forwards == expected.forwards and stated.trainings == 0
    assert np.isnan(stated.seconds) if stated.forwards else stated.seconds == 0
    bare = drift.open(recorder.folder)
    assert cache.estimated_effort(bare, drift.update_causes, {}).seconds == 0
