"""Interactive pictures of one run: paths, weights, coherence, labels; each shows the numbers of its round."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest
import tiny
import xarray as xr

import figures
from drift.analyses.landscapes.projected_plane import trajectory_plane
from drift.analyses.landscapes.weight_simplex import weight_simplex
from drift.analyses.rounds.coherence import coherence, pairwise
from drift.analyses.rounds.labels import label_scatter
from drift.analyses.rounds.variance import drift_variances
from figures.interactive.simplex import rows
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
    values = rows(triangle(), "loss")
    third, share = np.linspace(0, 1, 5)[:, None], np.linspace(0, 1, 5)
    np.testing.assert_allclose(values, 1 + 2 * (1 - third) * (1 - share) + 3 * (1 - third) * share)
    x, y = on_triangle(np.array([1, 0, 0]), np.array([0, 1, 0]))
    np.testing.assert_allclose(np.hypot(np.diff(x, append=x[0]), np.diff(y, append=y[0])), 1)


def test_weights_of_three_clients_are_a_map_with_its_grid_points():
    figure = figures.simplex_rounds([triangle(), triangle(0.125).assign_attrs(round=9)])
    net, drawn, points, marks = figure.data[:4]
    assert net.carpet == drawn.carpet != figure.data[4].carpet
    np.testing.assert_allclose(10**drawn.z, rows(triangle(), "loss"), rtol=1e-5)
    weights = points.customdata[:, :3]
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-6)
    np.testing.assert_allclose(points.customdata[:, 3], 1 + 2 * weights[:, 0] + 3 * weights[:, 1], rtol=1e-6)
    assert len(points.x) == 15 and "client &lt;b&gt; %{customdata[1]" in points.hovertemplate
    np.testing.assert_allclose(marks.customdata, triangle().mark_loss, rtol=1e-6)
    assert list(marks.text) == ["client 4", "client &lt;b&gt;", "client 1", "", ""]
    assert [step.label for step in figure.layout.sliders[0].steps] == ["7", "9"]


def test_a_map_of_weights_below_zero_is_refused(run):
    with pytest.raises(ValueError, match="without `extend`"):
        figures.simplex_rounds([run.cached(weight_simplex, step=0.5, extend=0.5)])
    with pytest.raises(ValueError, match="no map of weights"):
        figures.simplex_rounds([])


def test_cosines_are_those_of_the_round(run):
    figure = figures.coherence_matrix(run)
    assert [step.label for step in figure.layout.sliders[0].steps] == ["0", "1", "2"]
    for index, drawn in enumerate(figure.data):
        ds = pairwise(run, round=index)
        np.testing.assert_allclose(drawn.z, ds.cosine, rtol=1e-5, atol=1e-6)
        assert list(drawn.x) == [str(client) for client in ds.client.values] == list(drawn.y)
        whole = float(run.cached(coherence).coherence.sel(round=index))
        assert f"round {index}, coherence {whole:.3g}" in drawn.hovertemplate
        assert drawn.text[0][1].count("samples") == 2 and drawn.text[1][1].count("samples") == 1
    assert len(figures.coherence_matrix(run, rounds=[1]).data) == 1
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-1, 1)


def test_cosines_of_single_clients_are_refused(tmp_path):
    with pytest.raises(LookupError, match=r"no round of run .* has two clients"):
        figures.coherence_matrix(tiny.trained(tmp_path, "clients.per_round=1", "rounds=1"))


def test_every_label_of_every_client_is_a_bubble(run):
    drawn = figures.label_points(run, rounds=2).data[0]
    ds = run.cached(label_scatter, rounds=2)
    assert len(drawn.x) == int((ds["count"] > 0).sum())
    for at, (index, client, total, held) in enumerate(drawn.customdata):
        counts = ds["count"].sel(round=index, client=client)
        assert held == int(counts[int(drawn.y[at])]) and total == int(counts.sum()) == len(run.parts[client])
        assert abs(drawn.x[at] - index) < 0.5
    area = drawn.marker.size**2 / drawn.customdata[:, 3]
    np.testing.assert_allclose(area, area[0], rtol=1e-4)


def test_boxes_hold_the_gains_of_all_rounds_but_the_first(runs):
    figure = figures.gain_boxes(runs)
    assert [box.name for box in figure.data] == ["FedAvg", "FedLAW"]
    box = figure.data[1]
    wanted = np.concatenate([run.cached(drift_variances).gain.values[1:] for run in runs[2:]])
    np.testing.assert_allclose(box.y, wanted, rtol=1e-6)
    assert box.customdata.tolist() == [[1, 5], [2, 5], [1, 6], [2, 6]]
    assert "round %{customdata[0]}" in box.hovertemplate and "seed %{customdata[1]}" in box.hovertemplate


def test_curvature_has_two_panels(runs):
    figure = figures.curvature_rounds(runs)
    assert len(figure.data) == 2 * 6 and figure.layout.yaxis.type == "log"
    assert [one.xaxis for one in figure.data] == ["x"] * 6 + ["x2"] * 6
    assert (np.asarray(figure.data[-1].y) >= 1 - 1e-6).all()


def test_labels_are_named_from_the_most_held_on():
    assert label_words(np.array([0.25, 0, 0.75]), ["a", "b", "<i>"]) == "labels &lt;i&gt;: 75 %, a: 25 %"
    assert label_words(np.full(6, 1 / 6), list("abcdef")) == "labels a: 17 %, b: 17 %, c: 17 %, d: 17 %, ..."


def test_every_twin_is_at_hand_and_can_be_saved(run, path):
    twins = {"trajectory_play", "gain_boxes", "simplex_rounds", "label_points"}
    assert {*twins, "coherence_matrix", "surface3d"} <= set(figures.__all__)
    for figure in (figures.trajectory_play(path), figures.coherence_matrix(run), figures.label_points(run)):
        assert isinstance(figure, go.Figure) and json.loads(figure.to_json())["data"]
