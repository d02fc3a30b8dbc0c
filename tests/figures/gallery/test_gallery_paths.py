"""Figures of paths: what is drawn where, from made-up data."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from figures.gallery import (
    _stack,
    barriers_clients,
    barriers_pool,
    curve_modes,
    layers_rounds,
    lines_aligned,
    planes_classes,
    planes_projected,
    simplex_weights,
    trajectory_plane,
)
from figures.looks import style


def test_trajectory_is_drawn_through_its_marks_in_order():
    at = np.array([[-1.0, 0.5], [0.0, -0.5], [2.0, 0.25]])
    ds = xr.Dataset(
        {
            "loss": (("alpha", "beta"), np.arange(1.0, 16).reshape(3, 5), {"units": "nats"}),
            "mark_alpha": ("mark", at[:, 0]),
            "mark_beta": ("mark", at[:, 1]),
            "mark_round": ("mark", [0, 4, 9]),
            "distance": ("mark", [0.1, 0.2, 0.3], {"long_name": "distance out of the plane", "units": "1"}),
        },
        coords={"alpha": [-2.0, 0, 3], "beta": np.linspace(-1, 1, 5), "mark": ["round 0", "round 4", "round 9"]},
        attrs={"explained_alpha": 0.714, "explained_beta": 0.2, "isometric": 1},
    )
    figure = trajectory_plane.draw(ds)
    plane, off, _ = figure.axes
    np.testing.assert_array_equal(plane.lines[0].get_xydata(), at)
    np.testing.assert_array_equal(off.lines[0].get_xydata(), [[0, 0.1], [4, 0.2], [9, 0.3]])
    assert plane.get_xlabel() == "distance along u\n(71 % of variance)"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "global models, joined in the order of rounds"
    ]
    assert {note.get_text() for note in plane.texts} == {"round 0", "round 9"}


@pytest.mark.parametrize(("sign", "low", "high"), [(-1, -3, 0), (1, 0, 3), (0.5 * np.array([1, -1, 1]), -1.5, 1.5)])
def test_matrices_of_all_rounds_share_their_scales(sign, low, high):
    """One-sided where all have one sign: the darker, the lower, as on a map of the loss."""
    parts = []
    for label, top in (("round 0", 3.0), ("round 7", 1.0)):
        heights = np.array([[0, top, 0], [top, 0, 0.2], [0, 0.2, 0]])
        names = ["client 4", "client 2", "global"]
        parts.append(
            xr.Dataset(
                {"barrier": (("mark", "mark_other"), heights), "midpoint": (("mark", "mark_other"), sign * heights)},
                coords={"mark": names, "mark_other": names},
                attrs={"label": label},
            )
        )
    figure = barriers_clients.draw(_stack.join_panels((part.attrs["label"], part) for part in parts))
    panels = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    assert [ax.images[0].get_clim() for ax in panels] == [(0, 3), (0, 3), (low, high), (low, high)]
    lightness = [np.dot(panels[-1].images[0].to_rgba([low, high])[:, :3], [0.3, 0.6, 0.1])]
    assert (np.diff(lightness) > 0.5).all() == (low == -3 or high == 3)
    assert [text.get_text() for text in panels[0].get_xticklabels()] == ["4", "2", "global"]
    assert [ax.get_title() for ax in panels[:2]] == ["round 0", "round 7"]
    assert len(panels[0].texts) == 9


def test_curves_are_solid_and_straight_lines_dashed():
    t = np.linspace(0, 1, 3)
    values = {name: (("round", "t"), np.full((2, 3), 0.5)) for name in ("loss", "error")}
    values |= {f"straight_{name}": kept for name, kept in values.items()}
    ds = xr.Dataset(values, coords={"round": [0, 5], "t": t}, attrs={"kind": "polygon"})
    first = curve_modes.draw(ds).axes[0]
    looks = {line.get_label(): line.get_linestyle() for line in first.lines if not line.get_label().startswith("_")}
    assert looks == {
        "round 0, polygonal chain": "-",
        "round 0, straight line": "--",
        "round 5, polygonal chain": "-",
        "round 5, straight line": "--",
    }


def test_the_aligned_line_is_solid_and_barriers_are_told():
    t, nats = np.linspace(0, 1, 3), {"units": "nats"}
    ds = xr.Dataset(
        {
            "loss": ("t", [1.0, 3.0, 1.0], nats),
            "aligned_loss": ("t", [1.0, 1.5, 1.0], nats),
            "barrier": ((), 2.0, nats),
            "aligned_barrier": ((), 0.5, nats),
            "distance": ((), 4.0),
            "aligned_distance": ((), 3.0),
        },
        coords={"t": t},
        attrs={"label": "two clients, round 5"},
    )
    (panel,) = lines_aligned.draw(_stack.join_panels([(ds.attrs["label"], ds)]).assign_attrs(split="test")).axes
    looks = {line.get_label(): (line.get_linestyle(), line.get_ydata()[1]) for line in panel.lines}
    assert looks == {"as trained": ("--", 3.0), "aligned": ("-", 1.5)}
    assert panel.get_title() == "two clients, round 5\nbarrier 2 → 0.5 nats\ndistance 4 → 3"
    same = ds.assign(aligned_loss=ds.loss).assign_attrs(label="two clients, round 0")
    parts = [(part.attrs["label"], part) for part in (same, ds)]
    figure = lines_aligned.draw(_stack.join_panels(parts).assign_attrs(split="test"))
    assert [ax.get_title().split("\n")[0] for ax in figure.axes] == ["two clients, round 5"]
    told = figure.legends[0].get_title().get_text()
    assert told.replace("\n", " ") == "alignment does not change the line: two clients, round 0"


def test_members_and_random_averages_of_a_pool_stand_in_two_columns():
    heights = np.array([[0, 2.0], [2.0, 0]])
    part = xr.Dataset(
        {
            "barrier": (("mark", "mark_other"), heights, {"units": "nats"}),
            "midpoint": (("mark", "mark_other"), -heights, {"units": "nats"}),
            "mark_loss": ("mark", [0.5, 2.5]),
            "loss": ("value", [1.0, 1.5, 2.0], {"units": "nats"}),
        },
        coords={"mark": ["member 1", "member 2"], "mark_other": ["member 1", "member 2"]},
        attrs={"label": "round 3, client 4"},
    )
    figure = barriers_pool.draw(_stack.join_panels([(part.attrs["label"], part)]).assign_attrs(split="test"))
    losses = next(ax for ax in figure.axes if ax.get_ylabel() == "test loss [nats]")
    drawn = [line.get_ydata().tolist() for line in losses.lines]
    assert drawn == [[2.5], [0.5], [1.0, 1.5, 2.0]]
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["1", "2"]


def test_projected_models_are_joined_with_their_feet():
    marks = {
        "mark_alpha": [0.0, 2.0, 1.0, 1.0],
        "mark_beta": [0.0, 0.0, 1.0, 0.5],
        "mark_loss": [4.0, 5.0, 6.0, 3.0],
        "foot_loss": [4.0, 5.0, 6.0, 2.0],
        "distance": [0.0, 0.0, 0.0, 0.7],
        "in_plane": [1.0, 1.0, 1.0, 0.0],
    }
    ds = xr.Dataset(
        {"loss": (("alpha", "beta"), np.arange(1.0, 16).reshape(3, 5)), **{k: ("mark", v) for k, v in marks.items()}},
        coords={
            "alpha": [0.0, 1, 2],
            "beta": np.linspace(0, 1, 5),
            "mark": ["client 4", "client 0", "client 2", "start"],
        },
        attrs={"isometric": 1},
    )
    figure = planes_projected.draw(ds)
    plane, gaps = figure.axes[0], figure.axes[1]
    spanning, beside, feet = gaps.lines
    np.testing.assert_array_equal(spanning.get_ydata(), [4.0, 5.0, 6.0])
    np.testing.assert_array_equal(beside.get_xydata(), [[0.7, 3.0]])
    np.testing.assert_array_equal(feet.get_xydata(), [[0.7, 2.0]])
    shown = [part for part in plane.collections if len(part.get_offsets()) in (1, 3) and part.get_array() is not None]
    assert [part.get_array().tolist() for part in shown[-2:]] == [[4.0, 5.0, 6.0], [3.0]]
    assert {note.get_text() for note in plane.texts} == {"4", "0", "2", "start"}


def test_holders_of_a_class_are_black():
    ds = xr.Dataset(
        {
            "class_error": (("alpha", "beta", "class"), np.linspace(0, 1, 30).reshape(3, 5, 2)),
            "holds": (("client", "class"), [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]),
            "mark_alpha": ("mark", [0.0, 2.0, 1.0, 1.0]),
            "mark_beta": ("mark", [0.0, 0.0, 1.0, 0.3]),
        },
        coords={"alpha": [0.0, 1, 2], "beta": np.linspace(0, 1, 5), "class": ["a", "b"], "client": [7, 8, 9]},
    )
    panels = planes_classes.draw(ds).axes[:2]
    assert [ax.get_title() for ax in panels] == ["class a", "class b"]
    triangles = [[line.get_color() for line in ax.lines if line.get_marker() == "^"] for ax in panels]
    assert triangles == [["black", "white", "white"], ["white", "white", "black"]]


def test_corners_of_a_triangle_are_the_clients():
    weights = np.linspace(0, 1, 3)
    inside = weights[:, None] + weights[None] <= 1
    values = np.where(inside, weights[:, None] + 1, np.nan)
    marks = {"mark_alpha": [1.0, 0, 0, 1 / 3, 0.5], "mark_beta": [0.0, 1, 0, 1 / 3, 0.25]}
    marks |= {"mark_loss": [2.0, 1, 1, 1.3, 1.5], "mark_error": [0.2, 0.1, 0.1, 0.1, 0.1]}
    names = ["client 5", "client 1", "client 3", "mean", "by size"]
    ds = xr.Dataset(
        {
            "loss": (("alpha", "beta"), values, {"units": "nats"}),
            "error": (("alpha", "beta"), values / 10),
            **{name: ("mark", held) for name, held in marks.items()},
        },
        coords={"alpha": weights, "beta": weights, "mark": names},
        attrs={"label": "round 2"},
    )
    first = simplex_weights.draw(_stack.join_panels([(ds.attrs["label"], ds)])).axes[0]
    corners = {note.get_text(): tuple(np.round(note.xy, 3)) for note in first.texts}
    assert corners == {"client 5\nloss 2": (0, 0), "client 1\nloss 1": (1, 0), "client 3, loss 1": (0.5, 0.866)}
    places = {line.get_label(): line.get_xydata()[0] for line in first.lines}
    np.testing.assert_allclose(places["equal weights"], [0.5, 3**0.5 / 6])
    np.testing.assert_allclose(places["weights by size"], [0.375, 3**0.5 / 8])


def test_negative_eigenvalues_of_layers_are_hollow():
    ds = xr.Dataset(
        {"eigenvalue": (("algorithm", "seed", "layer_round", "layer"), [[[[2.0, -0.5, 3.0]]]])},
        coords={"algorithm": ["fedavg"], "seed": [1], "layer_round": [4], "layer": ["a.weight", "a.bias", "b.weight"]},
        attrs={"split": "test", "curvature": "hessian"},
    )
    (panel,) = layers_rounds.draw(ds).axes
    line, hollow = panel.lines
    np.testing.assert_allclose(line.get_ydata(), [2.0, 0.5, 3.0])
    np.testing.assert_array_equal(hollow.get_xydata(), [[1, 0.5]])
    assert line.get_color() == style.colour("fedavg")
    assert [text.get_text() for text in panel.get_xticklabels()] == ["a.weight", "a.bias", "b.weight"]


def test_one_client_a_round_has_no_barriers(tmp_path):
    from tests import tiny

    run = tiny.trained(tmp_path, "clients.per_round=1", "rounds=1")
    for figure in (trajectory_plane, barriers_clients, curve_modes, lines_aligned, planes_projected, simplex_weights):
        with pytest.raises(LookupError, match="fedscape train"):
            figure.data([run])
