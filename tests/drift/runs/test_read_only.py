"""Results of a run that may not be written are computed, and nothing is stored beside it."""

import os
import warnings

import pytest
import tiny

import drift
from drift.runs import cache, unstored_results
from figures import cli


@pytest.fixture
def read_only(tmp_path, monkeypatch):
    """A run whose folders refuse new files, for the user root too, who is asked by `os.access` alone."""
    run = tiny.trained(tmp_path / "runs")
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: access(path, mode) and not mode & os.W_OK)
    monkeypatch.setattr(unstored_results, "_WARNED", set())
    return run


def test_results_are_those_of_a_run_that_stores_them_and_it_is_said_once(read_only, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    said = []
    run = read_only.with_progress(None, said.append)
    assert run.cached(drift.coherence).coherence.equals(drift.coherence(run).coherence)
    plane = run.cached(drift.round_plane, points=3)
    assert said == [f"{run.name} is read-only: results are computed, and not stored."]
    assert plane.loss.equals(drift.round_plane(run, points=3).loss) and plane.attrs["complete"] == 1
    assert sorted(tmp_path.rglob("*")) == before, "neither a result nor a lock"


def test_python_is_warned_once_and_a_stored_result_is_read(read_only, monkeypatch):
    with pytest.warns(UserWarning, match="read-only: results are computed, and not stored"):
        read_only.cached(drift.coherence)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_only.cached(drift.drift_variances)
    monkeypatch.undo()
    stored = read_only.cached(drift.coherence)
    monkeypatch.setattr(cache, "_computed", None)
    assert read_only.cached(drift.coherence).equals(stored)


def test_the_command_writes_the_result_elsewhere(read_only, tmp_path, capsys):
    before = sorted(read_only.folder.rglob("*"))
    with pytest.raises(SystemExit) as stop:
        cli.main(["analyse", "coherence", str(read_only.folder), "-o", str(tmp_path / "x.csv")])
    told = capsys.readouterr().err
    assert stop.value.code == 0 and told.count("read-only") == 1 and "kept in" not in told, told
    assert (tmp_path / "x.csv").exists() and sorted(read_only.folder.rglob("*")) == before
