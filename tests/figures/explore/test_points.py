"""The warm evaluator gives what `landscape.evaluate` gives; surveys refine, store and are cancelled."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
import tiny
import torch
from survey_runs import surveyed

import drift
from drift.runs import cache
from figures.explore.plane import surveys
from figures.explore.plane.levels import PREVIEW_SAMPLES, groups, levels, stages
from figures.explore.plane.maps import is_close, shown_text
from figures.explore.plane.points import client_losses, empty_table, grid_values, numbers, values
from figures.explore.plane.queries import COHORT, Grid, PointQuery
from figures.explore.plane.survey_results import Analysis, minimum
from figures.explore.plane.surveys import Survey
from figures.explore.shell.app import Explorer
from figures.explore.work.workspace import Workspace
from landscape.sweep.evaluate import evaluate

pytestmark = pytest.mark.usefixtures("no_survey_remembered")

MODELS = ("start", "end", "client 3")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"))


def cohort(run, index):
    record = run.round(index)
    order = record.ids.argsort()
    return record.ids[order].tolist(), record.clients[order]


def test_weights_of_the_cohort_give_what_evaluate_gives(run):
    _, clients = cohort(run, 1)
    rows = [[0.2, 0.3, 0.5], [0.45, 0.45, 0.0], [1 / 3] * 3]
    found = values(run, (PointQuery(1, COHORT), rows))
    expected = evaluate(run.task, clients, torch.tensor(rows, dtype=torch.float64))
    for name in ("loss", "error"):
        np.testing.assert_array_equal(found[name], expected[name].numpy())
    alone = values(run, (PointQuery(1, COHORT), rows[1:2]))
    np.testing.assert_array_equal(alone["loss"], found["loss"][1:2])


def test_classes_are_counted_by_hand(run):
    ids, clients = cohort(run, 2)
    row = [0.5, 0.25, 0.25]
    found = numbers(run, (PointQuery(2, COHORT), row))
    test = run.task.split("test")
    theta = torch.tensor(row) @ clients
    predicted = run.task.outputs(theta, "test").argmax(1)
    assert found.samples == len(test) == found.confusion.sum()
    for truth in range(len(found.confusion)):
        own = predicted[test.targets == truth]
        assert found.confusion[truth].tolist() == torch.bincount(own, minlength=len(found.confusion)).tolist()
        assert found.class_error[truth] == pytest.approx(float((own != truth).double().mean()))
    assert found.error == pytest.approx(float((predicted != test.targets).double().mean()))
    assert found.loss == values(run, (PointQuery(2, COHORT), [row]))["loss"][0]
    losses = client_losses(run, (PointQuery(2, COHORT), row))
    assert sorted(losses) == sorted(ids)
    own = run.client_samples(ids[0], 2)
    expected = evaluate(run.task, clients, torch.tensor([row], dtype=torch.float64), split=own)["loss"]
    assert losses[ids[0]] == float(expected[0])


def test_a_survey_refines_to_the_analysis_and_stores_it(jobs, run):
    grid = Grid(PointQuery(1, MODELS, samples=9), points=9)
    survey, shapes = surveyed(jobs, run, grid)
    assert (survey.error, shapes) == (None, [(5, 5), (9, 9)])
    expected = drift.models_plane(run, round=1, models=list(MODELS), points=9, samples=9)
    for name in ("loss", "error", "class_error", "mark_loss", "mark_class_error", "mark_alpha", "alpha", "beta"):
        np.testing.assert_array_equal(survey.surface[name].values, expected[name].values, err_msg=name)
    assert survey.surface.mark.values.tolist() == expected.mark.values.tolist()
    while [job for job in jobs.active if not job.ended]:
        threading.Event().wait(0.02)
    analysis = Analysis.from_grid(grid)
    stored = cache.stored(run, analysis.function, analysis.arguments)
    np.testing.assert_array_equal(stored.loss, expected.loss)
    assert stored.attrs["complete"] == 1
    surveys._FINISHED.clear()
    assert surveyed(jobs, run, grid)[1] == [(9, 9)]  # the stored one is shown at once


def test_a_box_and_a_line_are_those_of_the_analyses(jobs, run):
    box = (0.0, 0.5, -0.25, 0.25)
    survey, _ = surveyed(jobs, run, Grid(PointQuery(2, MODELS), points=5, box=box))
    expected = drift.models_plane(run, round=2, models=list(MODELS), points=5, box=list(box))
    np.testing.assert_array_equal(survey.surface.loss, expected.loss)
    survey, shapes = surveyed(jobs, run, Grid(PointQuery(2, MODELS[:2], "client 3"), "line", points=17))
    assert shapes == [(5,), (9,), (17,)]
    expected = drift.models_line(run, round=2, models=list(MODELS[:2]), points=17, split="client 3")
    np.testing.assert_array_equal(survey.surface.loss, expected.loss)


def test_what_cannot_be_evaluated_is_one_line(jobs, run):
    survey, _ = surveyed(jobs, run, Grid(PointQuery(1, ("start", "end", "client 99"))))
    assert survey.surface is None and "no client 99" in str(survey.error)
    survey, _ = surveyed(jobs, run, Grid(PointQuery(1, ("start", "end", "round 0"))))  # the start of round 1
    assert "same model" in str(survey.error)


def test_a_cancelled_survey_keeps_what_it_has(jobs, run):
    coarse = threading.Event()
    survey = Survey(jobs, run, Grid(PointQuery(0, MODELS), points=41), on_change=lambda survey: coarse.set())
    assert coarse.wait(60)
    survey.cancel()
    assert survey.surface.loss.shape < (41, 41) and not survey.ended
    assert [job for job in jobs.active if job.title == "plane of round 0"] == []


def test_levels_grow_and_end_at_the_last_point():
    masks = levels((21, 17))
    assert [mask.sum() for mask in masks] == [25, 21 * 17] and masks[0][::5, ::4].all()
    assert [mask.sum() for mask in levels((4, 4))] == [16]
    assert [mask.sum() for mask in levels((41,))] == [11, 21, 41]


def test_a_map_is_interpolated_between_its_points_and_says_its_error(jobs, run, monkeypatch):
    monkeypatch.setattr(surveys, "SOON", 0.0)
    shown, event = [], threading.Event()

    def change(survey):
        shown.append(survey.surface)
        if survey.ended:
            event.set()

    survey = Survey(jobs, run, Grid(PointQuery(2, MODELS), points=21, margin=0.5), on_change=change)
    assert event.wait(60)
    first, *between, whole = shown
    assert first.loss.shape == (5, 5) and "evaluated" not in {*first.attrs, *whole.attrs}
    assert between[0].attrs["evaluated"] == 41
    assert between[-1].attrs["random_points"] == 32, "points drawn at random are tested at last"
    expected = drift.models_plane(run, round=2, models=list(MODELS), margin=0.5)
    np.testing.assert_array_equal(whole.loss, expected.loss)
    for ds in shown:
        assert [ds[name].attrs for name in ds.coords] == [expected[name].attrs for name in ds.coords]
        assert ds.loss.attrs == expected.loss.attrs and ds.class_error.attrs == expected.class_error.attrs
        assert ds["class"].values.tolist() == expected["class"].values.tolist()
    exact = np.log(whole.loss.values)
    for ds in between:
        mask = ~ds.interpolated.values
        assert mask.sum() == ds.attrs["evaluated"]
        np.testing.assert_array_equal(ds.loss.values[mask], whole.loss.values[mask])
        away = np.abs(np.log(ds.loss.values) - exact).max() / np.ptp(exact)
        assert 0 < away < 2 * float(ds.loss_interpolation_share)
        assert ds.class_error.min() >= 0 and ds.class_error.max() <= 1
    assert all(float(ds.loss_interpolation_share) > surveys.TOLERANCE for ds in between[:-2])
    assert float(between[-1].loss_interpolation_share) <= surveys.TOLERANCE
    assert survey.lattice.loss.shape in ((5, 5), (9, 9), (17, 17))
    part = whole.error.sel(alpha=survey.lattice.alpha, beta=survey.lattice.beta)
    np.testing.assert_array_equal(survey.lattice.error, part)
    assert is_close(between[0], "loss") and is_close(whole, "error")
    jumps = between[0].assign(error_interpolation_share=0.3)
    assert not is_close(jumps, "error") and is_close(jumps.assign(error_interpolation_share=0.01), "error")
    for kind, words in (("log", "of the range of the logarithm"), ("linear", "of the range of the values")):
        assert shown_text(between[0].assign_attrs(error_interpolated_in=kind), "error", "exact").endswith(words)
    text = shown_text(between[0], "class 1", "exact")
    share = float(between[0].class_error_interpolation_share[1])
    assert text.startswith("shown: 21 x 21 points, interpolated from 41 exact ones") and f"{share:.2g}" in text
    assert shown_text(whole, "loss", "exact") == "shown: 21 x 21 points exact"


def test_calls_are_equal_for_all_threads_and_points_that_share_work_stay_together():
    rows = np.array([[0.0, place, place % 3] for place in range(50)])
    cells = np.arange(1, 50)
    assert [len(part) for part in groups(cells, rows, None, 1.0, 2)] == [1, 1]
    pieces = groups(cells, rows, 0.1, 1.0, 2)
    assert [len(piece) for piece in pieces] == [9, 8, 8, 8, 8, 8]
    ordered = np.concatenate(pieces)
    assert sorted(ordered) == cells.tolist() and np.diff(rows[ordered, 2]).min() == 0
    assert {stage.precision for stage in stages((21, 21), "fast")} == {"fast"}
    rough, *as_asked = stages((21, 21), "exact")
    assert (rough.precision, rough.samples) == ("fast", PREVIEW_SAMPLES)
    assert {(stage.precision, stage.samples) for stage in as_asked} == {("exact", None)}


def test_the_minimum_has_the_error_of_fit_and_samples(run):
    grid = Grid(PointQuery(2, MODELS), points=9, margin=3.0)
    surface = drift.models_plane(run, round=2, models=list(MODELS), points=9, margin=3.0)
    found = minimum(run, (grid, surface))
    assert found.state in ("inside", "edge", "none")
    if found.state == "inside":
        assert (np.diag(found.covariance) > 0).all()
    else:
        assert found.reason


def test_grid_values_are_evaluated_in_any_order(run):
    grid = Grid(PointQuery(1, MODELS), points=5)
    rows = empty_table(run, grid).rows
    whole = grid_values(run, (grid, rows, "exact", None))
    again = grid_values(run, (grid, rows[[7, 3]], "exact", None))
    np.testing.assert_array_equal(again.values["loss"], whole.values["loss"][[7, 3]])
    assert whole.seconds >= 0 and whole.exact and whole.complete and whole.samples > 3
    fewer = replace(grid, query=replace(grid.query, samples=3))
    three = grid_values(run, (fewer, rows[:1], "exact", whole.samples))
    assert three.values["loss"][0] != whole.values["loss"][0] and three.complete and three.samples == 3
    some = grid_values(run, (grid, rows[:1], "exact", 3))
    assert some.values["loss"][0] == three.values["loss"][0] and not some.complete and some.samples == 3


def test_batch_statistics_are_stated_where_models_have_batch_normalisation(tmp_path, run):
    def stated(shown, rows):
        return [numbers(shown, (PointQuery(1, MODELS), row)).statistics for row in rows]

    rows = ([1.0, 0.0, 0.0], [0.5, 0.5, 0.0])
    assert stated(run, rows) == ["", ""]
    normalised = tiny.trained(tmp_path, "task.model=tiny:normalised")
    assert stated(normalised, rows) == ["own", "recomputed"]
    plane = drift.models_plane(normalised, round=1, models=list(MODELS), points=5)
    words = "points have recomputed statistics of batch normalisation, marks their own: both may differ at one place"
    assert shown_text(plane, "loss", "exact") == f"shown: 5 x 5 points exact; {words}"


def test_the_page_says_which_batch_statistics_its_numbers_have(tmp_path):
    run = tiny.trained(tmp_path, "task.model=tiny:normalised")
    workspace = Workspace([run.folder])

    def has(text):
        ends = time.monotonic() + 60
        while not any(text in unescape(part.object) for part in shown):
            assert time.monotonic() < ends, [part.object for part in shown]
            time.sleep(0.05)

    rule = "the round's end its own: both may differ at one place"
    try:
        explorer = Explorer(workspace, "view=weights&round=1")
        weights, samples = explorer.views["weights"], explorer.views["samples"]
        shown = [weights.point.text]
        has(f"it has recomputed statistics of batch normalisation, {rule}")
        explorer.selection.change(weights=[1.0, 0.0, 0.0], gamma=1.0)
        has("it has its own statistics of batch normalisation")
        explorer.selection.change(view="samples", client=None)
        shown = [samples.busy]
        has("The round's end has its own statistics of batch normalisation.")
        explorer.selection.change(model="aggregate")
        has("has recomputed statistics of batch normalisation, a client's model its own")
    finally:
        workspace.close()
