"""Minima fitted below the grid, against quadratics and other functions whose minimum is known."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from landscape.geometry.planes import plane
from landscape.surfaces.minimum import add_sampling_error, fitted_minimum, label_minimum
from landscape.surfaces.surface import surface
from tests.oracles import quadratic, thetas


def grid(function, alpha=(-2.0, 3.0, 11), beta=(-1.0, 4.0, 9)):
    """A surface of function(alpha, beta) with a mark "mean" at (0.5, 0.5)."""
    x, y = np.linspace(*alpha[:2], alpha[2]), np.linspace(*beta[:2], beta[2])
    values = np.asarray(function(*np.meshgrid(x, y, indexing="ij")), dtype=float) + np.zeros((len(x), len(y)))
    return xr.Dataset(
        {"loss": (("alpha", "beta"), values), "mark_alpha": ("mark", [0.5]), "mark_beta": ("mark", [0.5])},
        coords={"alpha": x, "beta": y, "mark": ["mean"]},
    )


def bowl(at, matrix=((3.0, 1.0), (1.0, 2.0))):
    a, b, c = matrix[0][0], matrix[0][1], matrix[1][1]
    return lambda x, y: 0.7 + (a * (x - at[0]) ** 2 + 2 * b * (x - at[0]) * (y - at[1]) + c * (y - at[1]) ** 2) / 2


NARROW = ((50.0, 49.0), (49.0, 50.0))
"""A valley oblique to the grid, ten times as long as wide: the lowest cell may lie far from the minimum."""


@pytest.mark.parametrize("matrix", [((3.0, 1.0), (1.0, 2.0)), NARROW], ids=["bowl", "oblique valley"])
@pytest.mark.parametrize("at", [(0.13, 1.41), (-0.7, 2.2), (2.9, 0.0)])
def test_the_minimum_of_a_quadratic_is_exact(at, matrix):
    found = fitted_minimum(grid(bowl(at, matrix)))
    assert found.state == "inside" and found.reason == ""
    np.testing.assert_allclose(list(found.at.values()), at, atol=1e-9)
    assert found.value == pytest.approx(0.7)
    assert max(found.errors.values()) < 1e-9


@pytest.mark.parametrize("points", [(9, 7), (21, 25), (6, 40)])
def test_the_minimum_of_an_oracle_is_that_of_its_plane(points):
    oracle = quadratic(5)
    models = thetas(oracle.task, 3, spread=1.0)
    sweep = plane(*models, points=points, margin=20.0)
    frame, origin = np.array(sweep.axes) @ models.numpy(), sweep.origin @ models.numpy()
    matrix, centre = oracle.matrix.numpy(), oracle.centre.numpy()
    known = np.linalg.solve(frame @ matrix @ frame.T, frame @ matrix @ (centre - origin))
    found = fitted_minimum(surface(oracle.task, sweep, metrics=("loss",)))
    np.testing.assert_allclose(list(found.at.values()), known, atol=1e-6)


@pytest.mark.parametrize("points", [11, 21, 25, 41])
@pytest.mark.parametrize("skew", [0.2, 0.5])
def test_the_minimum_of_a_skewed_function_is_within_twice_the_error(points, skew):
    at = (0.37, 1.21)

    def skewed(x, y):
        u, v = x - at[0], y - at[1]
        return np.cosh(u) + np.exp(skew * v) - skew * v + u**2 * v / 20

    found = fitted_minimum(grid(skewed, (-2.0, 3.0, points), (-1.0, 4.0, points)))
    away = np.array([found.at["alpha"], found.at["beta"]]) - at
    errors = np.array(list(found.errors.values()))
    assert (np.abs(away) <= 2 * errors + 1e-9).all()
    assert errors.max() < 0.5 * 5 / (points - 1)  # half a step


ELSEWHERE = {
    "beyond the edge": (bowl((3.4, 1.0)), "edge"),
    "far beyond the edge": (bowl((30.0, 1.0)), "edge"),
    "in a corner": (bowl((-9.0, -9.0)), "edge"),
    "a slope": (lambda x, y: x + 2 * y, "edge"),
    "a saddle": (lambda x, y: (x - 0.5) ** 2 - (y - 1.5) ** 2, "edge"),
    "flat": (lambda x, y: 0 * x + 1.3, "none"),
    "a valley without end": (lambda x, y: 1 + (x - 0.4) ** 2 + 1e-9 * (y - 1.5) ** 2, "none"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_surface_without_a_minimum_inside_says_so(name):
    function, state = ELSEWHERE[name]
    ds = grid(function)
    if name == "flat":
        ds.loss.values[5, 4] -= 1e-9  # its lowest cell is inside
    found = fitted_minimum(ds)
    assert (found.state, found.reason != "") == (state, True)
    assert all(np.isnan(value) for value in found.at.values())
    assert all(np.isnan(value) for value in found.offset({"alpha": 0.0, "beta": 0.0}))
    about = label_minimum(found, ds)
    assert str(about.minimum_state.values) == state and np.isnan(about.minimum_offset)


def test_missing_cells_and_coarse_grids_have_no_minimum():
    ds = grid(bowl((0.13, 1.41)))
    place = np.unravel_index(int(ds.loss.values.argmin()), ds.loss.shape)
    ds.loss.values[place[0] + 1 :] = np.nan
    assert fitted_minimum(ds).state == "edge"
    ds.loss.values[:] = np.nan
    assert "no point of the grid" in fitted_minimum(ds).reason
    assert "11 x 4 points" in fitted_minimum(grid(bowl((0.1, 1.4)), beta=(-1.0, 4.0, 4))).reason


def test_a_line_has_its_minimum_below_the_grid():
    t = np.linspace(-0.5, 1.5, 12)
    found = fitted_minimum(xr.Dataset({"loss": ("t", 3 * (t - 0.77) ** 2 + 1)}, coords={"t": t}))
    assert found.at["t"] == pytest.approx(0.77)
    assert found.offset({"t": 1.0}) == pytest.approx((0.23, 0), abs=1e-9)


def test_the_error_of_the_samples_is_that_of_their_mean():
    """Losses |theta - s|^2 / 2 of samples s: the minimum is the mean of s, its variance that of a mean."""
    random = np.random.default_rng(0)
    spread, count, folds = np.array([0.8, 0.3]), 400, 20
    samples = np.array([0.4, 1.3]) + random.normal(size=(count, 2)) * spread
    ds = grid(lambda x, y: sum((x - s[0]) ** 2 + (y - s[1]) ** 2 for s in samples) / 2 / count)
    found = fitted_minimum(ds)
    np.testing.assert_allclose(list(found.at.values()), samples.mean(0), atol=1e-9)
    at = found.fit.centre + found.fit.cells
    losses = ((at[None] - samples[:, None]) ** 2).sum(2) / 2
    parts = np.arange(count) % folds
    by_fold = np.stack([losses[parts == fold].mean(0) for fold in range(folds)])
    errors = add_sampling_error(found, by_fold, np.bincount(parts)).errors
    np.testing.assert_allclose(list(errors.values()), samples.std(0, ddof=1) / count**0.5, rtol=0.35)
    distance, error = add_sampling_error(found, by_fold, np.bincount(parts)).offset({"alpha": 0.4, "beta": 5.0})
    assert error == pytest.approx(errors["beta"], rel=0.05) and distance == pytest.approx(
        5 - samples[:, 1].mean(), rel=0.01
    )


def test_samples_that_leave_no_minimum_are_told():
    found = fitted_minimum(grid(bowl((0.13, 1.41))))
    at = found.fit.centre + found.fit.cells
    by_fold = np.stack([10 * at[:, 0] ** 2, -9 * at[:, 0] ** 2])
    left = add_sampling_error(found, by_fold, np.array([5, 5]))
    assert left.state == "none" and "samples" in left.reason
    with pytest.raises(ValueError, match="1 folds"):
        add_sampling_error(found, by_fold[:1], np.array([5]))
