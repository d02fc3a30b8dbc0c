"""Nothing of another selection stays on the page: of a run that cannot be opened, a round, a run that was replaced."""

from __future__ import annotations

import shutil
import time

import pytest
import tiny

pytest.importorskip("panel", reason="no panel here; pip install 'fedscape[explore]'")

from figures.explore.shell.app import Explorer
from figures.explore.views import round as round_view
from figures.explore.work.workspace import Workspace
from landscape.sweep.evaluate import evaluate


def eventually(condition):
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.05)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs; the second one cannot be opened by the pages of this file."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (5, 6):
        tiny.trained(folder, f"seed={seed}")
    return folder


@pytest.fixture
def opened(folder, monkeypatch):
    """Opens a page of a query; in it, names of the runs."""
    workspace = Workspace([folder])
    first, second = workspace.runs.names
    own = workspace.runs.run
    refusal = LookupError("this run cannot be opened.")

    def run(name):
        if name == second:
            raise refusal
        return own(name)

    monkeypatch.setattr(workspace.runs, "run", run)
    yield lambda query: (Explorer(workspace, f"runs={first}&round=1&{query}"), first, second)
    workspace.close()


@pytest.mark.parametrize("name", ["plane", "weights", "samples", "path", "round"])
def test_a_run_that_cannot_be_opened_shows_nothing_of_the_run_before(opened, name):
    explorer, first, second = opened(f"view={name}&plane.points=5")
    view = explorer.views[name]
    assert view.content.visible and view.panel[1].visible
    explorer.selection.change(runs=[second])
    assert (view.problem, view.content.visible) == ("this run cannot be opened.", False)
    assert view.panel[1].visible, "pickers stay"
    explorer.selection.change(runs=[first])
    assert (view.problem, view.content.visible) == ("", True)


def test_wrong_corners_hide_the_plane_and_can_be_corrected(opened):
    explorer, _, second = opened("view=plane&plane.points=5")
    view = explorer.views["plane"]
    eventually(lambda: view._survey.ended)
    before = view.plot.figure
    assert before
    explorer.selection.change(corners=["start", "end", f"{second}: round 99"])
    assert not view.content.visible and "99" in view.problem
    picker = view.controls.corners[2]
    assert picker.value == f"{second}: round 99" and "client 0" in str(picker.groups)
    explorer.selection.change(corners=["start", "end", "start"])
    eventually(lambda: "are the same model" in view.problem)
    assert view.plot.figure == ""
    picker.value = next(name for name in picker.groups["round 1"] if name.startswith("client"))
    eventually(lambda: view._survey.ended and view.plot.figure not in ("", before))
    assert view.content.visible


def test_a_round_all_of_whose_clients_diverged_shows_no_other_cohort(opened, monkeypatch):
    own = round_view.cohort_table
    empty = {2}
    monkeypatch.setattr(
        round_view,
        "cohort_table",
        lambda run, round: own(run, round=round).isel(client=slice(0, 0 if round in empty else None)),
    )
    explorer, _, _ = opened("view=round")
    view = explorer.views["round"]
    assert "Round 1" in view._summary.object
    explorer.selection.change(round=2)
    assert "every client of round 2" in view.problem and not view.content.visible
    explorer.selection.change(clients=[1])
    assert "every client of round 2" in view.problem and not view.content.visible
    explorer.selection.change(round=1)
    assert view.content.visible and "Round 1" in view._summary.object
    eventually(lambda: view._labels is not None)


def test_a_path_of_one_round_stays_a_sentence(opened, monkeypatch):
    explorer, _, _ = opened("view=path")
    view = explorer.views["path"]
    eventually(lambda: view._plot.figure)
    monkeypatch.setattr("figures.explore.views.path.path_rounds", lambda run: [0])
    view._about = ("another",)
    for clients in ([1], [2]):
        explorer.selection.change(clients=clients)
        assert "one global model" in view.problem and not view.content.visible


def test_a_plane_and_its_point_follow_the_run_that_another_corner_is_of(tmp_path):
    run, other = tiny.trained(tmp_path), tiny.trained(tmp_path, "seed=6")
    workspace = Workspace([tmp_path])
    query = f"runs={run.name},{other.name}&view=plane&round=1&corners=start,{other.name}: round 1&point=0.0,1.0"
    try:
        explorer = Explorer(workspace, f"{query}&plane.points=5&plane.samples=all")
        plane = explorer.views["plane"]

        def is_shown(loss):
            survey, number = plane._survey, plane.point._numbers
            return survey.ended and number is not None and number.loss == survey.surface.mark_loss.values[1] == loss

        def loss_of(shown):
            model = shown.round(1).kept("end")
            return float(evaluate(run.task, model[None], [[1.0]])["loss"][0])

        before = loss_of(other)
        eventually(lambda: is_shown(before))
        eventually(lambda: all(job.ended for job in workspace.jobs.active))
        other = tiny.replaced(other, "seed=7", "local.lr=0.5")
        after = loss_of(other)
        assert abs(after - before) > 0.1 * before
        workspace.runs.poll()
        explorer._update({"growth"})
        eventually(lambda: is_shown(after))
        explorer.selection.change(view="samples", model=f"{other.name}: round 1")
        samples = explorer.views["samples"]
        eventually(lambda: samples._answer is not None)
        shown = samples._answer
        shutil.rmtree(tmp_path / "elsewhere")
        tiny.replaced(other, "seed=8", "local.lr=0.7")
        explorer._update({"growth"})
        eventually(lambda: samples._answer is not None and samples._answer is not shown)
    finally:
        workspace.close()
