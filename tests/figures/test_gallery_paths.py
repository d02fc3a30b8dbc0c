"""Figures of paths: what is drawn where, from made-up data."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from figures.gallery import _stack, barriers_clients, curve_modes, trajectory_plane


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
    assert plane.get_xlabel() == "alpha (71 % of the variance)"
    assert {note.get_text() for note in plane.texts} == {"round 0", "round 9"}


def test_matrices_of_all_rounds_share_their_scales():
    parts = []
    for label, top in (("round 0", 3.0), ("round 7", 1.0)):
        heights = np.array([[0, top, 0], [top, 0, 0.2], [0, 0.2, 0]])
        names = ["client 4", "client 2", "global"]
        parts.append(
            xr.Dataset(
                {"barrier": (("mark", "mark_other"), heights), "midpoint": (("mark", "mark_other"), -heights)},
                coords={"mark": names, "mark_other": names},
                attrs={"label": label},
            )
        )
    figure = barriers_clients.draw(_stack.beside(parts))
    panels = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    assert [ax.collections[0].get_clim() for ax in panels] == [(0, 3), (0, 3), (-3, 3), (-3, 3)]
    assert [text.get_text() for text in panels[0].get_xticklabels()] == ["4", "2", "global"]
    assert [ax.get_title() for ax in panels[:2]] == ["round 0", "round 7"]
    assert len(panels[0].texts) == 6


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


def test_one_client_a_round_has_no_barriers(tmp_path):
    from tests import tiny

    run = tiny.trained(tmp_path, "clients.per_round=1", "rounds=1")
    for figure in (trajectory_plane, barriers_clients, curve_modes):
        with pytest.raises(LookupError, match="fedscape train"):
            figure.data([run])
