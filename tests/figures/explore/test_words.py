"""What the explorer says in a few words: rounds that a mean is of, losses that are not finite, names in pickers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tiny

pytest.importorskip("panel", reason="no panel here; pip install 'fedscape[explore]'")

import drift
from figures.explore.plane.plane_controls import PlaneControls
from figures.explore.record.diagnosed import Diagnosed
from figures.explore.record.series import lines
from figures.explore.shell.app import Explorer
from figures.explore.views.path import _words
from figures.explore.views.runs import _summary
from figures.explore.work.open_runs import OpenRuns
from figures.explore.work.workspace import Workspace
from figures.page.diagnosis_text import extent
from figures.selection.lines import summaries


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def explorer(run):
    workspace = Workspace([run.folder])
    yield lambda query: Explorer(workspace, query)
    workspace.close()


def test_a_mean_over_fewer_than_ten_rounds_says_so(run, tmp_path):
    def caption(folder, names):
        runs = OpenRuns([folder])
        shown, _ = lines({name: runs.recorded(name) for name in names(runs)}, "loss")
        return _summary(summaries(shown), shown, [], compared=False)

    assert "over the last 3 rounds" in caption(run.folder, lambda runs: runs.names)
    tiny.trained(tmp_path, "rounds=12")
    assert "over the last 10 rounds" in caption(tmp_path, lambda runs: runs.names)
    tiny.trained(tmp_path, "seed=6")
    assert "over the last 3 to 10 rounds" in caption(tmp_path, lambda runs: runs.names)


def test_a_path_says_that_no_finite_loss_was_recorded(run):
    ds = drift.trajectory_points(run)
    assert "recorded test loss 0." in _words(ds, 1, 1)
    ds["mark_loss"] = ds.mark_loss * np.nan
    ds.mark_loss.attrs = drift.trajectory_points(run).mark_loss.attrs
    text = _words(ds, 1, 1)
    assert "nan" not in text and "the recorded test loss is not finite, or there is none" in text


def test_a_client_of_another_round_has_its_words_in_the_picker(explorer, run):
    absent = next(client for client in range(4) if client not in run.round(1).ids.tolist())
    plane = explorer(f"view=plane&round=1&quantity=client {absent}").views["plane"]
    assert plane.controls.quantity.options[f"loss of client {absent}'s samples"] == f"client {absent}"
    assert isinstance(plane.controls, PlaneControls)


def test_a_diagnosis_counts_recorded_rounds_and_ends_sentences_once(explorer, run):
    result = drift.diagnose(run, quick=True)
    assert extent(result) == "3 rounds, 3 of 4 clients per round"
    assert extent(replace(result, last=39)) == "3 of 40 rounds recorded, 3 of 4 clients per round"
    view = explorer("view=diagnosis").views["diagnosis"]
    row = view._finding(replace(result.findings[0], statement="It ends.", value=np.nan), Diagnosed(result, ()))
    assert "It ends.</p>" in row[0].object
    assert SimpleNamespace(**result.to_dict()).last == 2
