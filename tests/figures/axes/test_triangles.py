"""Maps over the weights of three clients, from made-up data."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from figures.axes import triangles
from landscape.geometry.simplex import on_triangle


def _ax():
    return Figure().subplots()


def _surface(extend: int = 0, steps: int = 4) -> xr.Dataset:
    ticks = np.arange(-extend, steps + 2 * extend + 1) / steps
    alpha, beta = np.meshgrid(ticks, ticks, indexing="ij")
    loss = 0.1 + (alpha - 0.25) ** 2 + 2 * (beta - 0.5) ** 2
    loss[alpha + beta > 1 + extend / steps + 1e-9] = np.nan
    corners = np.array([[1, 0], [0, 1], [0, 0], [1 / 3, 1 / 3], [0.2, 0.7]])
    return xr.Dataset(
        {
            "loss": (("alpha", "beta"), loss),
            "mark_alpha": ("mark", corners[:, 0]),
            "mark_beta": ("mark", corners[:, 1]),
            "mark_loss": ("mark", np.arange(5.0)),
        },
        coords={"alpha": ticks, "beta": ticks, "mark": ["client 7", "client 2", "client 4", "mean", "by size"]},
    )


def test_corners_are_equally_far_apart():
    corners = np.array([on_triangle(*pair) for pair in ((1, 0), (0, 1), (0, 0))])
    np.testing.assert_allclose(corners, [[0, 0], [1, 0], [0.5, 0.75**0.5]])
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1)
    np.testing.assert_allclose(sides, 1)


def test_a_triangle_marks_the_minimum_the_means_and_the_corners():
    ax = triangles.triangle(_surface(), ax=_ax())
    ring, size, mean = ax.lines
    np.testing.assert_allclose(ring.get_xydata()[0], on_triangle(0.25, 0.5))
    np.testing.assert_allclose(size.get_xydata()[0], on_triangle(0.2, 0.7))
    assert [mark.get_label() for mark in (ring, size, mean)] == ["minimum", "weights by size", "equal weights"]
    assert ring.get_path_effects()  # a white ring is seen on white too
    assert [note.get_text() for note in ax.texts] == ["client 7\nloss 0", "client 2\nloss 1", "client 4, loss 2"]
    assert ax.get_aspect() == 1


def test_weights_below_zero_show_the_edges_and_limits_fit_what_is_drawn():
    ax = triangles.triangle(_surface(extend=1), ax=_ax())
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[0, 0], [1, 0], [0.5, 0.75**0.5], [0, 0]], atol=1e-12)
    left, _ = on_triangle(1.5, -0.25)
    assert ax.get_xlim()[0] == pytest.approx(left)


def test_a_triangle_without_values_is_refused():
    with pytest.raises(LookupError, match="loss has no values"):
        triangles.triangle(_surface() * np.nan, ax=_ax())


def test_optima_follow_the_rounds_and_their_ellipse_holds_the_covariance():
    best = np.array([[0.2, 0.3, 0.5], [np.nan] * 3, [0.6, 0.1, 0.3], [0.4, 0.5, 0.1]])
    known = best[[0, 2, 3]]
    ds = xr.Dataset(
        {
            "best_weight": (("round", "client"), best),
            "mean": ("client", known.mean(0)),
            "covariance": (("client", "client_other"), np.cov(known.T)),
        },
        coords={"round": [0, 5, 6, 9], "client": [7, 2, 4], "client_other": [7, 2, 4]},
    )
    ax = triangles.optima(ds, ax=_ax())
    points = np.stack(on_triangle(known[:, 0], known[:, 1]), axis=1)
    np.testing.assert_allclose(ax.collections[0].get_offsets(), points)
    np.testing.assert_allclose(ax.lines[0].get_xydata(), points)
    around = ax.lines[1].get_xydata() - points.mean(0)
    inverse = np.linalg.inv(np.cov(points.T))
    np.testing.assert_allclose(np.einsum("ni,ij,nj->n", around, inverse, around), 1)
    assert not triangles.optima(ds.drop_vars("covariance"), ax=_ax()).lines[1:]
