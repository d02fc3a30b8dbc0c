"""Interactive pictures of one run: paths, weights."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest
import xarray as xr

import figures
from drift.analyses.landscapes.projected_plane import trajectory_plane
from drift.analyses.landscapes.weight_simplex import weight_simplex
from figures.interactive.simplex import rows, simplex
from figures.interactive.words import label_words
from landscape.geometry.simplex import on_triangle


@pytest.fixture(scope="module")
def run(runs):
    return runs[0]


@pytest.fixture(scope="module")
def path(run):
    return run.cached(trajectory_plane, clients=True, points=4)


def test_a_path_reaches_to_the_round_and_ends_in_its_largest_point(run, path):
    notes = {index: figures.client_notes(run, index) for index in run.rounds()}
    figure = figures.trajectory_play(path, notes=notes)
    assert isinstance(figure, go.Figure) and [frame.name for frame in figure.frames] == ["0", "1", "2"]
    for count, frame in enumerate(figure.frames, 1):
        way, clients = frame.data
        np.testing.assert_allclose(way.x, path.mark_alpha.values[:count], rtol=1e-5)
        assert (len(way.marker.size) == count and int(np.argmax(way.marker.size)) == count - 1) or count == 1
        there = path.client_beta.sel(round=count - 1).dropna("client")
        np.testing.assert_allclose(clients.y, there, rtol=1e-5)
        first = int(there.client[0])
        assert clients.text[0].startswith(f"client {first}, round {count - 1}<br>{len(run.parts[first])} samples")
        assert list(frame.traces) == [2, 3]
    np.testing.assert_array_equal(figure.data[2].x, figure.frames[-1].data[0].x)


def test_a_path_is_played_at_once_and_only_when_asked(path):
    figure = figures.trajectory_play(path)
    play, pause = figure.layout.updatemenus[0].buttons
    assert (play.label, pause.label) == ("Play", "Pause")
    for options in (play.args[1], *(step.args[1] for step in figure.layout.sliders[0].steps)):
        assert options["transition"]["duration"] == 0 and options["mode"] == "immediate"
    assert "Plotly.animate" not in figure.to_html(auto_play=False, include_plotlyjs=False)


def test_a_path_without_clients_has_none(run):
    figure = figures.trajectory_play(run.cached(trajectory_plane, points=4))
    assert all(len(frame.data[1].x) == 0 for frame in figure.frames)


def triangle(step: float = 0.25) -> xr.Dataset:
    """loss = 1 + 2 a + 3 b over the weights a, b >= 0, a + b <= 1."""
    ticks = np.arange(0, 1 + step / 2, step)
    loss = 1 + 2 * ticks[:, None] + 3 * ticks
    loss[ticks[:, None] + ticks > 1 + 1e-9] = np.nan
    ds = xr.Dataset({"loss": (("alpha", "beta"), loss)}, {"alpha": ticks, "beta": ticks}, {"round": 7})
    ds = ds.assign_coords(mark=["client 4", "client <b>", "client 1", "mean", "by size"])
    ds["mark_alpha"] = ("mark", [1, 0, 0, 1 / 3, 0.5])
    ds["mark_beta"] = ("mark", [0, 1, 0, 1 / 3, 0.2])
    ds["mark_loss"] = 1 + 2 * ds.mark_alpha + 3 * ds.mark_beta
    ds.loss.attrs.update(long_name="loss", units="nats")
    return ds


def test_a_square_of_rows_holds_the_triangle():
    values = rows(triangle())
    third, share = np.linspace(0, 1, 5)[:, None], np.linspace(0, 1, 5)
    np.testing.assert_allclose(values, 1 + 2 * (1 - third) * (1 - share) + 3 * (1 - third) * share)
    x, y = on_triangle(np.array([1, 0, 0]), np.array([0, 1, 0]))
    np.testing.assert_allclose(np.hypot(np.diff(x, append=x[0]), np.diff(y, append=y[0])), 1)


def test_weights_of_three_clients_are_a_map_with_its_grid_points():
    figure = simplex(triangle())
    net, drawn, points, marks = figure.data[:4]
    assert net.carpet == drawn.carpet
    np.testing.assert_allclose(10**drawn.z, rows(triangle()), rtol=1e-5)
    weights = points.customdata[:, :3]
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-6)
    np.testing.assert_allclose(points.customdata[:, 3], 1 + 2 * weights[:, 0] + 3 * weights[:, 1], rtol=1e-6)
    assert len(points.x) == 15 and "client &lt;b&gt; %{customdata[1]" in points.hovertemplate
    np.testing.assert_allclose(marks.customdata, triangle().mark_loss, rtol=1e-6)
    assert list(marks.text) == ["client 4", "client &lt;b&gt;", "client 1", "", ""]


def test_a_map_of_weights_below_zero_is_refused(run):
    with pytest.raises(ValueError, match="without `extend`"):
        simplex(run.cached(weight_simplex, step=0.5, extend=0.5))


def test_labels_are_named_from_the_most_held_on():
    assert label_words(np.array([0.25, 0, 0.75]), ["a", "b", "<i>"]) == "labels &lt;i&gt;: 75 %, a: 25 %"
    assert label_words(np.full(6, 1 / 6), list("abcdef")) == "labels a: 17 %, b: 17 %, c: 17 %, d: 17 %, ..."


def test_a_path_can_be_saved(path):
    assert json.loads(figures.trajectory_play(path).to_json())["data"]
