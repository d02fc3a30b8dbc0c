"""Runs and results that earlier versions stored are read, gone on with, and never taken for those of another run."""

import shutil

import older
import pytest
import tiny
import torch

import drift
from drift.analyses.rounds.norms_and_weights import update_norms
from drift.runs.cache import EARLIER, REVISION, earlier_name, stored_name
from drift.simulation.simulate import simulate
from tests.drift.store.test_exchanges import named_by, result_of


@pytest.mark.parametrize(
    "overrides",
    [
        ["method=fedeve"],
        ["method=ima", "method.window=2", "method.start=0.4"],
        ["method=ima", "method.window=2", "method.start=0.4", "method.feedback=false"],
        ["method=ima", "method.base=fedeve", "method.window=2", "method.start=0.4"],
        ["method=fedavgm"],
        ["method=scaffold", "local.momentum=0.0"],
        ["method=fedlaw", "method.server_epochs=2"],
        ["clients.weighting=uniform"],
        ["method=feddyn"],
        ["keep.clients=none", "keep.globals=none"],
        ["keep.dtype='bfloat16 deltas'"],
        ["keep.compress=true"],
    ],
)
def test_older_runs_of_every_kind_are_whole(tmp_path, overrides):
    run = tiny.trained(tmp_path, *overrides)
    older.without_names(run.folder)
    assert named_by(run.folder) == []
    assert drift.open(run.folder).round(-1).index == 2


@pytest.mark.parametrize(
    "name", ["fedavg-blobs-dirichlet-s5-2", "fedavg-blobs-dirichlet-s5-", "fedavg-blobs-dirichlet-s7", "fedeve"]
)
def test_stores_of_earlier_versions_are_read_and_gone_on_with(tmp_path, name):
    if name.endswith("s5-"):
        (name,) = (
            path.name
            for path in older.STORED.glob("fedavg*")
            if not path.name.startswith("fedavg-blobs-dirichlet-s5-2") and "-s5-" in path.name
        )
    folder = older.copied(tmp_path, name)
    before = drift.open(folder)
    done, length = before.committed, before.experiment.rounds
    ends = before.models()
    assert named_by(folder) == []
    run = simulate(before.experiment, runs=tmp_path)
    assert run.folder == folder and run.rounds() == list(range(length))
    assert torch.equal(run.models()[:done], ends)
    assert named_by(folder) == []


def test_results_of_earlier_versions_are_read_in_their_own_run_alone(tmp_path, monkeypatch):
    folder = older.copied(tmp_path / "own", "fedavg-blobs-dirichlet-s5-2")
    result = result_of(folder)
    monkeypatch.setattr("drift.runs.cache._announce", lambda *given: pytest.fail("it was computed again"))
    found = drift.open(folder).cached(update_norms)
    assert found.attrs["run"] == folder.name and result_of(folder) == result
    renamed = folder.rename(tmp_path / "mine")
    assert drift.open(renamed).cached(update_norms).identical(found)  # the settings in run.json name it
    monkeypatch.undo()
    other = tiny.trained(tmp_path / "other", "local.lr=0.06")
    older.without_names(other.folder)
    shutil.copytree(renamed / "results" / result.name, other.folder / "results" / result.name)
    assert named_by(other.folder) == [f"results/{result.name}"]
    assert not other.cached(update_norms).equals(found)


def test_results_of_analyses_that_compute_something_else_now_are_not_read():
    for name in REVISION:
        assert earlier_name(getattr(drift, name)) == ""
    assert earlier_name(update_norms) == "drift.weights.update_norms" and stored_name(update_norms) == "update_norms"


def test_every_public_analysis_is_stored_under_its_public_name():
    for name, earlier in EARLIER.items():
        found = getattr(drift, name, None)
        if found is not None:
            assert stored_name(found).split()[0] == name
            assert earlier_name(found) == ("" if name in REVISION else earlier)
