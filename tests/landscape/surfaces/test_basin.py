"""Surfaces in a few numbers."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from landscape.geometry.lines import line
from landscape.geometry.planes import plane
from landscape.surfaces.basin import (
    area_below,
    basin,
    centre_offset,
    curvature,
    flatness_radius,
    line_summary,
    loss_excess,
    minimum,
)
from landscape.surfaces.minimum import fitted_minimum
from landscape.surfaces.surface import surface
from tests.oracles import quadratic, thetas


def _valley() -> xr.Dataset:
    """Two basins at beta = 0 and beta = 4 with a wall of height 5 between, open at alpha = 2."""
    loss = np.array([[1.0, 2, 5, 2, 1], [0.5, 2, 5, 2, 1], [2, 2, 3, 2, 2]])
    return xr.Dataset(
        {
            "loss": (("alpha", "beta"), loss),
            "mark_loss": ("mark", [1.0, 1.0, 5.0]),
            "mark_alpha": ("mark", [0.0, 0.1, 0.0]),
            "mark_beta": ("mark", [0.0, 3.9, 2.0]),
        },
        coords={"alpha": [0.0, 1, 2], "beta": [0.0, 1, 2, 3, 4], "mark": ["1", "2", "mean"]},
    )


def test_minimum_says_where():
    lowest = minimum(_valley())
    assert float(lowest) == 0.5
    assert (float(lowest.alpha), float(lowest.beta)) == (1, 0)


def test_missing_cells_are_passed_over():
    ds = _valley()
    ds.loss.values[1, 0] = np.nan
    assert float(minimum(ds)) == 1
    ds.loss.values[:] = np.nan
    with pytest.raises(LookupError, match="all 15 cells are missing"):
        minimum(ds)


def test_a_mark_between_the_points_may_be_the_lowest_of_all():
    ds = _valley()
    assert loss_excess(ds) == 4.5
    ds.mark_loss.values[2] = 0.25
    assert loss_excess(ds) == 0
    assert flatness_radius(ds, 0.1) == 0.0
    assert flatness_radius(ds, 4.8) == pytest.approx(flatness_radius(ds.assign(mark_loss=("mark", [1, 1, 0.5])), 4.55))


def test_offset_and_excess_are_measured_from_the_mark():
    assert np.isnan(centre_offset(_valley()))  # its lowest point lies on the edge, in a grid of three points
    oracle = quadratic(3, eigenvalues=(4, 2, 1))
    ds = surface(oracle.task, plane(*thetas(oracle.task, 3, spread=1.0), points=(9, 7), margin=2.0), metrics=("loss",))
    lowest = fitted_minimum(ds).at
    for place, name in enumerate(map(str, ds.mark.values)):
        at = np.array([ds.mark_alpha[place], ds.mark_beta[place]])
        assert centre_offset(ds, name) == pytest.approx(np.hypot(*(at - list(lowest.values()))))
    assert loss_excess(_valley()) == 4.5
    with pytest.raises(LookupError, match="no mark 'middle'; it has 1, 2, mean"):
        loss_excess(_valley(), "middle")


def test_line_summary_of_a_parabola_is_known():
    oracle = quadratic(3, eigenvalues=(4, 2, 1))
    a = oracle.centre - 3 * oracle.eigenvectors[:, 0]
    b = oracle.centre + oracle.eigenvectors[:, 0]
    found = line_summary(surface(oracle.task, line(a, b), metrics=("loss",)))
    assert float(found.minimum) == pytest.approx(0, abs=1e-12)
    assert float(found.minimum_t) == pytest.approx(0.75)
    assert (float(found.start), float(found.end)) == pytest.approx((18, 2))
    assert float(found.barrier) == 0
    assert float(found.centre_offset) == pytest.approx(0.25)
    assert found.barrier.attrs["long_name"] == "loss barrier"


def test_barrier_is_above_the_straight_interpolation():
    ds = xr.Dataset(
        {"loss": ("t", [9.0, 1, 4, 3, 9]), "mark_loss": ("mark", [1.0, 3, 4]), "mark_t": ("mark", [0.0, 1, 0.5])},
        coords={"t": [-0.5, 0, 0.5, 1, 1.5], "mark": ["a", "b", "mean"]},
    )
    assert float(line_summary(ds).barrier) == 2
    assert float(line_summary(ds, "b").centre_offset) == pytest.approx(0.5 + 0.5 * (1 - 8 / 11) + 0.25, abs=0.2)


def test_basin_holds_all_marks_or_does_not_exist():
    ds = _valley().isel(mark=[0, 1])
    ds = ds.assign_coords(beta=ds.beta / 2).assign(mark_beta=ds.mark_beta / 2)  # cells of 1 x 0.5
    found = basin(ds)
    assert float(found.level) == 3
    assert float(found.area) == 13 * 0.5
    np.testing.assert_array_equal(found.component, ds.loss <= 3)
    assert float(found.open) == 1
    parted = basin(ds, 2.0)
    assert np.isnan(parted.area)
    assert np.isnan(parted.open)
    assert not parted.component.any()


def test_basin_leaves_out_cells_beyond_the_wall_and_knows_the_edge():
    loss = np.full((5, 7), 9.0)
    loss[1:3, 1:4], loss[3, 5] = 1.0, 0.5
    ds = xr.Dataset(
        {"loss": (("alpha", "beta"), loss), "mark_alpha": ("mark", [1.2, 2]), "mark_beta": ("mark", [1.0, 3.1])},
        coords={"alpha": np.arange(5.0), "beta": np.arange(7.0), "mark": ["1", "2"]},
    )
    found = basin(ds)
    assert (float(found.level), float(found.area), float(found.open)) == (1, 6, 0)
    assert area_below(ds, 1.0) == 7
    assert area_below(ds, 0.4) == 0
    assert float(basin(ds, 9.0).area) == 35
    ds.loss.values[1, 1] = np.nan
    with pytest.raises(LookupError, match="cells have values"):
        basin(ds)


def test_marks_divided_by_missing_cells_have_no_basin():
    ds = _valley().isel(mark=[0, 1])
    ds.loss.values[:, 2] = np.nan
    assert np.isnan(basin(ds).area)


def test_curvature_is_the_hessian_seen_on_the_plane():
    oracle = quadratic(5)
    models = thetas(oracle.task, 3, spread=1.0)
    sweep = plane(*models, points=(9, 7))
    frame = np.array(sweep.axes) @ models.numpy()
    known = np.linalg.eigvalsh(frame @ oracle.matrix.numpy() @ frame.T)[::-1]
    ds = surface(oracle.task, sweep, metrics=("loss",))
    for reach in (1, 3):
        found = curvature(ds, reach=reach)
        np.testing.assert_allclose(found, known, rtol=1e-8)
        assert found["rank"].values.tolist() == [1, 2]
    with pytest.raises(ValueError, match="7 points in beta"):
        curvature(ds, reach=4)


def test_curvature_of_a_line_and_of_too_few_values():
    t = np.linspace(-1, 2, 7)
    ds = xr.Dataset({"loss": ("t", 3 * (t - 2) ** 2 + 1)}, coords={"t": t})  # minimum at the edge
    np.testing.assert_allclose(curvature(ds), [6], rtol=1e-10)
    ds.loss.values[5] = np.nan
    with pytest.raises(LookupError, match="2 values around the minimum"):
        curvature(ds)


def test_flatness_radius_of_a_bowl_ends_at_its_wall_or_at_the_edge():
    x, y = np.meshgrid(np.linspace(-2, 2, 81), np.linspace(-3, 3, 121), indexing="ij")
    ds = xr.Dataset(
        {
            "loss": (("alpha", "beta"), x**2 + 4 * y**2),
            "mark_loss": ("mark", [0.0, 1.0]),
            "mark_alpha": ("mark", [0.0, 1.0]),
            "mark_beta": ("mark", [0.0, 0.0]),
        },
        coords={"alpha": x[:, 0], "beta": y[0], "mark": ["mean", "1"]},
    )
    assert flatness_radius(ds, 1.0) == pytest.approx(0.5, abs=0.051)
    assert flatness_radius(ds, 100.0) == 2
    assert flatness_radius(ds, 0.9, "1") == 0
    assert flatness_radius(ds, 100.0, "1") == 1


def test_marks_outside_of_the_grid_have_no_basin():
    ds = _valley()
    inner = ds.isel(beta=slice(1, -1))
    with pytest.raises(LookupError, match=r"^mark .* lies outside of the grid \(.* from .* to .*\); enlarge it\.$"):
        basin(inner)


def test_a_line_that_does_not_reach_both_models_has_no_barrier():
    t = np.linspace(0, 1, 11)
    loss = 1 + np.sin(np.pi * t)
    marks = {"mark_t": ("mark", [0.0, 1.0]), "mark_loss": ("mark", [1.0, 1.0])}
    ds = xr.Dataset({"loss": ("t", loss), **marks}, {"t": t, "mark": ["a", "b"]})
    assert line_summary(ds, "a").barrier.item() == pytest.approx(1)
    for part in (slice(1, None), slice(None, -1)):
        assert np.isnan(line_summary(ds.isel(t=part), "a").barrier.item())
