"""Figures of the explorer's planes, the triangle of weights and the lists of models."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import MagicMock

import numpy as np
import pytest
import tiny

import drift
from drift.runs.context import Context
from drift.runs.growing_run import GrowingRun
from figures.explore.plane import triangles
from figures.explore.plane.maps import (
    clients_figure,
    line_figure,
    minimum_text,
    plane_figure,
    quantity_of,
)
from figures.explore.plane.model_choices import default_corners, model_choices
from figures.explore.plane.point_panel import PointPanel
from figures.explore.plane.queries import Numbers, PointQuery
from figures.interactive.confusions import counts_map, error_bars
from landscape.surfaces.minimum import Minimum

NUMBERS = Numbers(0.5, 0.25, np.array([0.5, np.nan, 0.0]), np.array([[1, 1, 0], [0, 0, 0], [0, 0, 2]]), 4)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return tiny.trained(folder), tiny.trained(folder, "seed=6", "keep.clients=last 1")


@pytest.fixture(scope="module")
def plane(runs):
    return drift.models_plane(runs[0], round=1, points=5)


def test_a_plane_has_its_point_and_minimum(plane):
    minimum = Minimum("inside", "", {"alpha": 0.25, "beta": 0.5}, 0.75, np.diag([0.01, 0.04]))
    figure = plane_figure(plane, "loss", point=(0.1, 0.2), minimum=minimum)
    by_name = {trace.name: trace for trace in figure.data}
    assert (by_name["point"].x[0], by_name["point"].y[0]) == (0.1, 0.2)
    assert (by_name["minimum"].x[0], by_name["minimum"].y[0]) == (0.25, 0.5)
    np.testing.assert_allclose(by_name["minimum"].error_x.array, [1.96 * 0.1])
    np.testing.assert_allclose(by_name["minimum"].error_y.array, [1.96 * 0.2])
    assert "0.75 nats at u 0.25 ± 0.1, v 0.5 ± 0.2" in minimum_text(minimum, "nats")
    assert figure.layout.xaxis.title.text.startswith(f"distance along u, {plane.mark.values[0]} to ")
    at = {name: float(plane[f"mark_{name}"][3]) for name in ("alpha", "beta")}
    (models,) = [
        trace
        for trace in plane_figure(plane, "loss", minimum=Minimum("inside", "", at, 0.5, np.eye(2) * 1e-9)).data
        if getattr(trace, "mode", "") == "markers+text"
    ]
    assert dict(zip(models.text, models.textposition, strict=True))["mean of these three"] == "top right", (
        "beside the cross"
    )
    relief = plane_figure(plane, "loss", deep=True, point=(float(plane.alpha[2]), float(plane.beta[1])))
    assert relief.data[0].type == "surface"
    assert relief.data[-1].z[0] == pytest.approx(float(plane.loss[2, 1]))


def test_quantities_are_variables_of_the_surface(plane):
    shown, name = quantity_of(plane, "class 1")
    np.testing.assert_array_equal(shown[name], plane.class_error.isel({"class": 1}))
    assert shown[name].attrs["long_name"] == "error of class 1"
    assert quantity_of(plane, "error")[1] == "error" and quantity_of(plane, "client 3")[1] == "loss"
    for quantity in ("class 99", "speed"):
        with pytest.raises(LookupError, match="have no"):
            quantity_of(plane, quantity)


def test_a_line_has_its_models(runs):
    line = drift.models_line(runs[0], round=1, points=5)
    figure = line_figure(line, "error", point=0.5)
    np.testing.assert_allclose(figure.data[0].y, line.error, rtol=1e-6)
    assert list(figure.data[1].text) == ["start", "end", "mean of these two"]
    assert figure.data[-1].y[0] == pytest.approx(float(line.error.interp(t=0.5)))


def test_numbers_of_a_point():
    bars = error_bars({"this point": NUMBERS.class_error}, ["a<b", "b", "2"])
    assert list(bars.layout.xaxis.ticktext) == ["a&lt;b", "b", "2"] and list(bars.data[0].x) == [0, 1, 2]
    shares = counts_map(NUMBERS.confusion, ["a", "b", "c"]).data[0].z
    np.testing.assert_allclose(shares, [[0.5, 0.5, 0], [np.nan] * 3, [0, 0, 1]])
    assert list(clients_figure({7: 0.5, 2: 1.5}).data[0].x) == ["7", "2"]


def test_numbers_of_an_earlier_point_never_stand_beside_a_new_one(runs):
    view, takes = MagicMock(), []
    view.ask.side_effect = lambda function, run, item, take, **how: takes.append(take) or MagicMock()
    panel, place = PointPanel(view), PointQuery(1, ("start", "end", "mean"))
    for row in ([1.0, 0.0, 0.0], [0.0, 0.0, 1.0]):
        panel.show(runs[0], place, row, settled=False)
        if row[0]:
            takes[0](NUMBERS)
            assert "loss 0.5" in panel.text.object and "1 start" in panel.text.object
    takes[3](replace(NUMBERS, loss=0.75))
    assert "1 start" in panel.text.object, "the end of the round came before the numbers of the second point"
    takes[-2](replace(NUMBERS, loss=2.0))
    assert "1 mean" in panel.text.object and "loss 2," in panel.text.object and "end: loss 0.75" in panel.text.object


def test_a_place_on_the_triangle_and_its_weights_are_one():
    for share in ([0.2, 0.5, 0.3], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]):
        point = triangles.figure(triangles.surface(triangles.grid(), np.ones(66), "abc", "1"), np.array(share)).data[-1]
        np.testing.assert_allclose(triangles.share_at(point.x[0], point.y[0]), share, atol=1e-12)
    outside = triangles.share_at(-1.0, -1.0)
    assert outside.sum() == pytest.approx(1) and (outside >= 0).all()


def test_three_clients_share_their_weight_and_others_keep_theirs():
    weights, three = [0.1, 0.4, 0.2, 0.3], [3, 0, 1]
    rows = triangles.rows(weights, 0.5, three, triangles.grid())
    np.testing.assert_allclose(rows[:, 2], 0.1)
    np.testing.assert_allclose(rows[:, three].sum(1), 0.5 * 0.8)
    share = triangles.share_of(weights, three)
    np.testing.assert_allclose(triangles.rows(weights, 1.0, three, share[None])[0], weights)
    assert triangles.corners(weights, [7], [5, 6, 7, 9]) == [2, 1, 3]
    losses = np.arange(66.0)
    ds = triangles.surface(triangles.grid(), losses, ["x", "y", "z"], "1")
    corner = {tuple(share): loss for share, loss in zip(triangles.grid().tolist(), losses, strict=True)}
    assert ds.mark_loss.values.tolist() == [corner[1, 0, 0], corner[0, 1, 0], corner[0, 0, 1]]
    assert int(ds.loss.notnull().sum()) == 66


def test_models_are_listed_where_they_were_kept(runs):
    run, other = runs
    ids = sorted(run.round(1).ids.tolist())
    unread = GrowingRun(other.folder, Context())
    groups = model_choices(run, 1, [run, unread])
    assert unread.rounds() == [], "rounds of other runs are listed, not read"
    assert groups["round 1"] == ["start", "end", "aggregate", *[f"client {client}" for client in ids]]
    assert groups["global model after"] == ["round 0", "round 2"]
    assert groups[other.name] == [f"{other.name}: round 1", f"{other.name}: round 2"]
    assert default_corners(groups, [ids[2]])[0] == f"client {ids[2]}"
    without = model_choices(other, 0)
    assert without["round 0"] == ["start", "end"]
    assert default_corners(without) == ["start", "end", "round 1"]
    with pytest.raises(LookupError, match="three models"):
        default_corners({"round 0": ["end"]})
