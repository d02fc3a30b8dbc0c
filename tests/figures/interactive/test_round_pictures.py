"""Plotly figures of a cohort, of confusions and groups, and of a path up to a round."""

from __future__ import annotations

import numpy as np
import pytest
import tiny

from drift.analyses.landscapes.projected_plane import trajectory_plane
from drift.analyses.landscapes.trajectory_points import trajectory_points
from drift.analyses.rounds.cohort_table import cohort_table
from drift.analyses.samples.client_losses import client_losses
from drift.analyses.samples.disagreement import disagreement
from drift.analyses.samples.predictions import confusion
from figures.interactive.cohort import client_cloud, cosine_map, label_bars, own_losses
from figures.interactive.confusions import class_errors, confusion_map, group_bars
from figures.interactive.paths import path_until


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def table(run):
    return cohort_table(run, round=1)


def test_the_cloud_has_a_circle_per_client_and_marks_selected_ones(table):
    ids = table.client.values.tolist()
    (cloud,) = client_cloud(table, "cosine_mean", "update_norm", [ids[2]]).data
    np.testing.assert_allclose(cloud.x, table.cosine_mean, rtol=1e-6)
    np.testing.assert_allclose(cloud.y, table.update_norm, rtol=1e-6)
    assert list(cloud.customdata) == ids
    assert list(cloud.marker.symbol) == ["circle", "circle", "diamond"]
    order = np.argsort(table.relative_weight.values)
    assert (np.diff(np.array(cloud.marker.size)[order]) >= 0).all()


@pytest.mark.parametrize("alike", [False, True])
def test_the_matrix_names_its_clients_in_any_order(table, alike):
    (cells,) = cosine_map(table, [], alike=alike).data
    ids = [int(name) for name in cells.x]
    assert sorted(ids) == sorted(table.client.values.tolist())
    expected = table.cosine.sel(client=ids, client_other=ids)
    np.testing.assert_allclose(cells.z, expected, atol=1e-6)


def test_bars_of_labels_tell_client_and_class():
    shares = np.array([[0.25, 0.0, 0.75], [1.0, 0.0, 0.0]])
    bars = label_bars([4, 7], shares, ["a", "b", "<c>"], [7]).data
    assert [bar.name for bar in bars] == ["a", "&lt;c&gt;"]
    assert bars[1].customdata[0] == (4, 2) or list(bars[1].customdata[0]) == [4, 2]
    assert [list(bar.y) for bar in bars] == [[0.25, 1.0], [0.75, 0.0]]


def test_losses_before_and_after_are_three_traces(run):
    ds = client_losses(run, round=1)
    for trace, name in zip(own_losses(ds).data, ("start_own_loss", "own_loss", "end_own_loss"), strict=True):
        np.testing.assert_allclose(trace.y, ds[name], rtol=1e-6)


def test_a_confusion_map_has_classes_in_rows_and_frames_the_selected_cell(run):
    ds = confusion(run, round=1, models=["end", "start"])
    figure = confusion_map(ds, "start", (1, 0))
    (cells,) = figure.data
    counts = ds["count"].sel(model="start").values
    np.testing.assert_array_equal(cells.customdata, counts)
    np.testing.assert_allclose(np.sum(cells.z, axis=1)[counts.sum(1) > 0], 1, rtol=1e-6)
    (frame,) = figure.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1, frame.visible) == (-0.5, 0.5, 0.5, 1.5, True)
    assert not confusion_map(ds, "start").layout.shapes[0].visible


def test_errors_have_a_bar_per_model_and_class(run):
    ds = confusion(run, round=1, models=["end", "start"])
    bars = class_errors(ds, {"end": "global model", "start": "before"}).data
    for bar, model in zip(bars, ("end", "start"), strict=True):
        np.testing.assert_allclose(bar.y, ds.class_error.sel(model=model), rtol=1e-6)
    assert len({bar.marker.pattern.shape for bar in bars}) == 2, "they differ in grey too"


def test_bars_of_groups_add_up_to_their_sizes(run):
    ds = disagreement(run, round=0, groups=4)
    figure = group_bars(ds, ["a", "b", "c"], ("client 0", "global model"), 0)
    np.testing.assert_allclose(np.sum([bar.x for bar in figure.data], axis=0), ds.group_size)
    names = figure.layout.yaxis.ticktext
    assert names[0].startswith("<b>")
    assert len(set(names)) == len(names) > len(set(ds.group_class.values)), "groups of one class have letters"


def test_a_path_until_a_round_shows_its_cohort_with_and_without_a_map(run):
    ids = sorted(run.round(1).ids.tolist())
    for ds, first in (
        (trajectory_plane(run, clients=True, points=4), "contour"),
        (trajectory_points(run, clients=True), "scatter"),
    ):
        figure = path_until(ds, 1, [ids[0]])
        assert figure.data[0].type == first
        path, cohort = figure.data[-2:]
        assert (path.name, cohort.name) == ("global model", "clients")
        np.testing.assert_allclose(path.x, ds.mark_alpha[:2], rtol=1e-6)
        assert list(cohort.customdata) == ids
        assert list(cohort.text) == [str(ids[0]), "", ""]
        np.testing.assert_allclose(cohort.x, ds.client_alpha.sel(round=1, client=ids), rtol=1e-5)


def _bold(axis):
    """Names of an axis that are bold, and all of them."""
    texts = list(axis.ticktext)
    return [text[3:-4] for text in texts if text.startswith("<b>") and text.endswith("</b>")], texts


def test_bold_names_are_those_of_what_is_selected_in_every_picture(run, table):
    ids = table.client.values.tolist()
    for some in ([], [ids[1]], [ids[0], ids[2], 99]):
        inside = [str(client) for client in ids if client in some]
        shares = np.full((len(ids), 2), 0.5)
        pictures = (
            cosine_map(table, some),
            cosine_map(table, some, alike=True),
            label_bars(ids, shares, ["a", "b"], some),
            own_losses(client_losses(run, round=1), some),
        )
        for figure in pictures:
            bold, texts = _bold(figure.layout.xaxis)
            assert sorted(bold) == sorted(inside) and len(texts) == len(ids)
            assert [text.removeprefix("<b>").removesuffix("</b>") for text in texts] == list(
                figure.layout.xaxis.tickvals
            )
    ds = confusion(run, round=1, models=["end", "start"])
    for truth in (None, 0, 1):
        bold, texts = _bold(class_errors(ds, {"end": "global model"}, truth).layout.xaxis)
        assert bold == ([] if truth is None else [str(ds["class"].values[truth])]) and len(texts) == ds.sizes["class"]
    groups = disagreement(run, round=0, groups=4)
    for group in (None, 0, groups.sizes["group"] - 1):
        _, texts = _bold(group_bars(groups, ["a", "b", "c"], ("client 0", "global model"), group).layout.yaxis)
        assert [place for place, text in enumerate(texts) if text.startswith("<b>")] == (
            [] if group is None else [group]
        )
