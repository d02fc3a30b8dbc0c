"""The explorer without a browser: what a closed page leaves behind, and what waits."""

from __future__ import annotations

import threading
import time

import pytest
import tiny

pytest.importorskip("panel", reason="no panel here; pip install 'fedscape[explore]'")

import panel as pn

import drift
from figures.explore.shell import notebook
from figures.explore.shell.app import Explorer
from figures.explore.work.job import LongJob
from figures.explore.work.workspace import Workspace


def test_work_that_only_a_closed_page_waits_for_is_ended(tmp_path):
    run = tiny.trained(tmp_path)
    workspace = Workspace([run.folder])
    try:
        explorer, other = (Explorer(workspace, "view=plane&plane.points=101") for _ in range(2))
        stopped = []
        explorer.views["plane"]._jobs.append(LongJob("waits", _stop=stopped.append))
        survey = explorer.views["plane"]._survey
        explorer.close()
        assert len(stopped) == 1 and survey.cancelled
        assert not other.views["plane"]._survey.cancelled
    finally:
        workspace.close()


def test_keys_lead_to_the_first_round_the_next_one_and_the_last(tmp_path):
    workspace = Workspace([tiny.trained(tmp_path).folder])
    try:
        explorer = Explorer(workspace, "view=round&round=2")
        seen = []
        for key in ("ArrowLeft", "Home", "ArrowLeft", "ArrowRight", "End", "ArrowRight"):
            explorer.header.key(key)
            seen.append(explorer.selection.round)
        assert seen == [1, 0, 0, 1, None, None]
    finally:
        workspace.close()


def test_an_explorer_of_a_notebook_that_is_closed_leaves_the_work_of_others(tmp_path):
    run = tiny.trained(tmp_path)
    own = drift.open(run.folder, task=run.task)
    first, other = notebook.explorer(own), notebook.explorer(own)
    first.workspace.close()
    try:
        other.show(view="round", second="")
        assert (other.shown(), other.views["round"].problem) == (["round"], "")
    finally:
        other.workspace.close()


def eventually(condition):
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_a_page_shows_the_values_of_the_run_that_took_the_place_of_its_own(tmp_path):
    run = tiny.trained(tmp_path)
    workspace = Workspace([run.folder])
    query = "view=plane&round=1&corners=start,end&point=0.0,1.0&plane.points=5&plane.precision=exact"

    def settled(loss):
        def is_shown():
            survey, point = plane._survey, plane.point
            done = survey.ended and point._numbers is not None and point._end is not None
            return done and survey.surface.mark_loss.values[1] == pytest.approx(loss, rel=0.02)

        eventually(is_shown)
        assert plane.point._numbers.loss == plane.point._end[1].loss == loss

    try:
        explorer = Explorer(workspace, query)
        plane = explorer.views["plane"]
        settled(before := run.round(1).metrics["loss"])
        eventually(lambda: list(run.folder.glob("results/models_line-*")))
        eventually(lambda: all(job.ended for job in workspace.jobs.active))
        run = tiny.replaced(run, "seed=6", "local.lr=0.5")
        workspace.runs.poll()
        explorer._update({"growth"})
        after = run.round(1).metrics["loss"]
        assert abs(after - before) > 0.1 * before
        settled(after)
    finally:
        workspace.close()


def test_what_is_pushed_waits_while_a_message_of_the_page_is_handled(tmp_path, monkeypatch):
    """JupyterLab hands messages to a thread of their own; what both threads send must not be mixed up."""
    run = tiny.trained(tmp_path)
    workspace, order = Workspace([run.folder]), []
    arrived, pushed = threading.Event(), threading.Event()

    def handle(*_):
        order.append("begins")
        arrived.set()
        pushed.wait(0.5)
        order.append("ends")

    try:
        explorer = Explorer(workspace, "view=round")
        monkeypatch.setattr(pn.Column, "_on_msg", handle)
        page = threading.Thread(target=explorer.__panel__()._on_msg, args=("", None, None))
        page.start()
        assert arrived.wait(10)
        explorer.push(lambda: (order.append("pushed"), pushed.set()))
        page.join(10)
        assert order == ["begins", "ends", "pushed"]
    finally:
        workspace.close()


def test_what_is_pushed_waits_until_the_browser_has_the_views_that_are_placed(tmp_path):
    run = tiny.trained(tmp_path)
    workspace, done = Workspace([run.folder]), []
    try:
        explorer = Explorer(workspace, "view=round")
        explorer._repr_mimebundle_()
        first = explorer.page.state["placed"]
        explorer.show(view="runs")
        explorer.push(lambda: done.append("pushed"))
        explorer._flush(first)
        assert not done
        explorer._flush(explorer.page.state["placed"])
        assert done == ["pushed"]
    finally:
        workspace.close()
