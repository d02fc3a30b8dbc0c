"""Runs that are replaced under their name while the explorer evaluates them: no value of the old one is shown."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tiny
from survey_runs import loss_at, surveyed

import drift
from figures.explore.plane.points import numbers, values
from figures.explore.plane.queries import Grid, PointQuery
from figures.explore.plane.survey_results import store
from figures.explore.plane.surveys import Survey
from figures.explore.work.job import LongJob
from figures.explore.work.versions import has_link, round_version

pytestmark = pytest.mark.usefixtures("no_survey_remembered")

MODELS = ("start", "end", "client 3")


def test_a_run_that_was_replaced_under_its_name_has_its_own_values(jobs, tmp_path):
    run, grid = tiny.trained(tmp_path), Grid(PointQuery(1, MODELS[:2]), "line", points=5)
    end = PointQuery(1, ("end",))
    before = loss_at(run, "end")
    assert values(run, (end, [[1.0]]))["loss"][0] == before
    assert surveyed(jobs, run, grid)[0].surface.mark_loss.values[1] == before
    while not list(run.folder.glob("results/models_line-*")) or [job for job in jobs.active if not job.ended]:
        threading.Event().wait(0.02)
    run = tiny.replaced(run, "seed=6", "local.lr=0.5")
    after = loss_at(run, "end")
    assert abs(after - before) > 0.01
    assert values(run, (end, [[1.0]]))["loss"][0] == after
    assert numbers(run, (end, [1.0])).loss == after
    found, _ = surveyed(jobs, run, grid)
    assert found.surface.mark_loss.values[1] == after
    np.testing.assert_array_equal(found.surface.loss, drift.models_line(run, round=1, models=MODELS[:2], points=5).loss)


def test_a_model_of_another_run_that_was_replaced_is_the_new_one(tmp_path):
    run, other = tiny.trained(tmp_path), tiny.trained(tmp_path, "seed=6")
    name = f"{other.name}: round 2"
    place = PointQuery(1, (name, f"0.5 * start + 0.5 * {name}"))
    values(run, (place, [[1.0, 0.0]]))
    tiny.replaced(other, "seed=6", "local.lr=0.5")
    found = values(run, (place, [[1.0, 0.0], [0.0, 1.0]]))["loss"].tolist()
    assert found == [loss_at(run, model) for model in place.models]


@pytest.mark.parametrize("which", ["own", "other"])
def test_a_line_whose_run_is_replaced_while_it_is_evaluated_is_not_shown(tmp_path, which):
    run, other, waiting = tiny.trained(tmp_path), tiny.trained(tmp_path, "seed=6"), []
    models = ("start", f"{other.name}: round 2")

    class Held:
        """Jobs that wait until they are let go."""

        threads = 1

        def quick(self, function, run, items, *, on_result=None, on_end=None, **_):
            waiting.append((function, run, items, on_result, on_end))
            return LongJob("", len(items), state="running")

    def let_go(run):
        function, _, items, on_result, on_end = waiting.pop(0)
        for place, item in enumerate(items):
            answer = function(run, item)
            if on_result is not None:
                on_result(place, answer)
        if on_end is not None:
            on_end(LongJob("", len(items), state="done"))

    survey = Survey(Held(), run, Grid(PointQuery(1, models), "line", points=5), on_change=lambda _: None)
    let_go(run)
    named = {"own": run, "other": other}[which]
    there = tiny.replaced(named, "local.lr=0.5")
    run = there if which == "own" else run
    while waiting:
        assert waiting[0][0] is not store
        let_go(run)
    assert survey.surface is None and "was replaced meanwhile" in str(survey.error)
    assert named.name in str(survey.error)
    store(run, (survey.grid, survey.table, {named.folder: "of another run"}))
    assert not (run.folder / "results").exists()


def test_what_tells_a_round_stays_while_the_run_grows_and_changes_with_the_run(tmp_path):
    run = tiny.trained(tmp_path, "rounds=2")
    first, link, grown = round_version(run, 1), run.head, tiny.trained(tmp_path)
    assert round_version(grown, 1)[0][2] == first[0][2] and has_link(grown, link)
    other = tiny.trained(tmp_path, "seed=6")
    assert round_version(other, 1)[0][2] != first[0][2] and not has_link(other, link)
