"""The explorer without a browser: what its pickers do to its figures."""

import sys

import numpy as np
import pytest
import tiny

import drift
from drift.analyses.landscapes.overlay_plane import overlay_plane
from drift.analyses.landscapes.planes import round_plane
from drift.record.recorder import Recorder
from figures.interactive import explorer_views as views

pytest.importorskip("ipywidgets", reason="no ipywidgets here; pip install 'fedscape[notebook]'")
pytest.importorskip("anywidget", reason="no anywidget here; pip install 'fedscape[notebook]'")
from plotly.callbacks import Points

from figures.interactive.explorer import explorer


@pytest.fixture
def shown(runs):
    return explorer(runs, points=4)


def losses(figure):
    """Values of the map, not their logarithms."""
    return np.asarray(figure.data[0].customdata, dtype=float)


def test_it_begins_with_the_last_round_and_its_first_client(shown, runs):
    last = runs[0].round(-1)
    assert shown.round.value == last.index
    assert shown.client.value == min(last.ids.tolist())
    assert list(shown.run.options) == ["FedAvg, seed 5", "FedAvg, seed 6", "FedLAW, seed 5", "FedLAW, seed 6"]


def test_picking_a_round_draws_its_plane(shown, runs):
    before = losses(shown.plane)
    shown.round.value = 0
    ids = sorted(runs[0].round(0).ids.tolist())
    ds = runs[0].cached(round_plane, round=0, clients=ids, points=4)
    assert not np.array_equal(losses(shown.plane), before)
    np.testing.assert_allclose(losses(shown.plane), ds.loss.transpose("beta", "alpha").values, rtol=1e-6)
    assert list(shown.client.options) == ids
    assert {shape.x0 for shape in shown.drift.layout.shapes} == {0}


def test_picking_a_client_puts_it_first_and_rings_it(shown):
    ids = list(shown.client.options)
    shown.client.value = ids[1]
    marks, ring = shown.plane.data[1], shown.plane.data[-1]
    assert marks.text[0] == f"client {ids[1]}"
    assert (ring.x[0], ring.y[0]) == pytest.approx((marks.x[0], marks.y[0]))
    assert shown.plane.layout.title.text.endswith(f"client {ids[1]}")


def test_picking_a_run_draws_its_drift_bold(shown):
    shown.run.value = "FedLAW, seed 6"
    assert [trace.opacity for trace in shown.drift.data[:4]] == [0.4, 0.4, 0.4, 1.0]
    assert shown.pick.run.label == "fedlaw"


def test_a_client_that_takes_part_again_stays_picked(shown, runs):
    both = set(runs[0].round(2).ids.tolist()) & set(runs[0].round(1).ids.tolist())
    shown.client.value = max(both)
    shown.round.value = 1
    assert shown.client.value == max(both)


def test_the_map_may_show_the_loss_of_the_clients_own_samples(shown, runs):
    shown.shows.value = "client_loss"
    pick = shown.pick
    ids = sorted(runs[0].round(-1).ids.tolist())
    ds = runs[0].cached(overlay_plane, round=pick.round, clients=ids, points=4).client_loss.sel(client=pick.client)
    np.testing.assert_allclose(losses(shown.plane), ds.transpose("beta", "alpha").values, rtol=1e-6)
    shown.shows.value = "error"
    assert losses(shown.plane).max() <= 1


def test_a_curve_leaves_nothing_of_the_one_before(shown):
    shown.quantity.value = "client_variance"
    assert shown.drift.layout.yaxis.type == "log"
    shown.quantity.value = "accuracy"
    axis = shown.drift.layout.yaxis
    assert (axis.type, axis.dtick, axis.title.text) == ("linear", None, "test accuracy")


def test_pictures_of_one_kind_keep_their_traces(shown):
    before = [trace.uid for trace in (*shown.plane.data, *shown.drift.data)]
    shown.round.value = 1
    shown.run.value = "FedLAW, seed 5"
    assert [trace.uid for trace in (*shown.plane.data, *shown.drift.data)] == before


def test_a_click_on_a_dot_picks_its_round_and_client(shown):
    dots = shown.drift.data[-2]
    place = next(place for place, (index, _) in enumerate(dots.customdata) if index == 0)
    wanted = tuple(int(value) for value in dots.customdata[place])
    dots._dispatch_on_click(Points(point_inds=[place]), None)
    assert (shown.round.value, shown.client.value) == wanted


def test_the_dots_are_the_distances_of_the_clients(shown, runs):
    distance = runs[0].cached(drift.locality).distance
    dots = shown.drift.data[-2]
    assert len(dots.x) == int(distance.notnull().sum()) == 9
    for (index, client), y in zip(dots.customdata, dots.y, strict=True):
        assert y == pytest.approx(float(distance.sel(round=index, client=client)), rel=1e-6)


def test_what_cannot_be_shown_is_refused_by_name(shown):
    with pytest.raises(ValueError, match="no round 7 here; there are 0, 1, 2"):
        shown.show(round=7)
    with pytest.raises(ValueError, match="no client 9 here"):
        shown.show(client=9)


def test_a_run_that_kept_no_clients_says_so_in_place_of_the_plane(runs, tmp_path):
    without = tiny.trained(tmp_path, "keep.clients=none", "method=fedeve")
    shown = explorer([runs[0], without], points=4)
    shown.run.value = "FedEve"
    (note,) = shown.plane.layout.annotations
    assert "keep.clients=all" in note.text.replace("<br>", " ")
    assert not shown.plane.data
    assert list(shown.round.options) == [0, 1, 2]
    shown.run.value = "FedAvg"
    assert len(shown.plane.data) == 3 and not shown.plane.layout.annotations
    assert shown.plane.layout.xaxis.visible is not False


def test_two_clients_a_round_are_no_plane_but_have_a_drift(tmp_path):
    shown = explorer(tiny.trained(tmp_path, "clients.per_round=2"), points=4)
    assert "per_round >= 3" in shown.plane.layout.annotations[0].text.replace("<br>", " ")
    assert len(shown.drift.data[-2].x) == 6


def test_a_round_in_which_every_client_diverged_has_none_to_pick(tmp_path):
    recorder = Recorder(tmp_path / "broken")
    model = {"weight": np.zeros((2, 3), dtype=np.float32)}
    gone = {"weight": np.full((2, 3), np.nan, dtype=np.float32)}
    recorder.round(start=model, clients={0: (model, 2), 1: (gone, 7), 2: (model, 7)}, end=model)
    recorder.round(clients={0: (gone, 2), 1: (gone, 7)}, end=model)
    shown = explorer(drift.open(tmp_path / "broken"), points=4)
    assert shown.client.value is None
    assert "has clients []" in shown.plane.layout.annotations[0].text.replace("<br>", " ")
    shown.round.value = 0
    assert list(shown.client.options) == [0, 2]


def test_it_is_shown_by_standing_last_in_a_cell(shown):
    assert "application/vnd.jupyter.widget-view+json" in shown._repr_mimebundle_()


@pytest.mark.parametrize("name", ["anywidget", "ipywidgets"])
def test_a_missing_extra_is_named(name, runs, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(LookupError, match=rf"needs {name}; pip install 'fedscape\[notebook\]'"):
        explorer(runs)


def test_no_run_is_an_error():
    with pytest.raises(LookupError, match="no run was given"):
        explorer([])


def test_the_pictures_are_functions_of_what_is_picked(runs):
    pick = views.Pick(runs[0], 1, 99)
    with pytest.raises(ValueError, match="pick a round that has one"):
        views.plane(pick)
