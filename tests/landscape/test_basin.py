"""Surfaces in a few numbers."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from landscape.basin import centre_offset, connected, line_summary, loss_excess, minimum
from landscape.lines import line
from landscape.surface import surface
from tests.oracles import quadratic


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


def test_offset_and_excess_are_measured_from_the_mark():
    assert centre_offset(_valley()) == pytest.approx(np.hypot(1, 2))
    assert centre_offset(_valley(), "1") == 1
    assert loss_excess(_valley()) == 4.5
    with pytest.raises(LookupError, match="no mark 'middle'; it has 1, 2, mean"):
        loss_excess(_valley(), "middle")


def test_connection_depends_on_the_level():
    ds = _valley().isel(mark=[0, 1])
    assert connected(ds, 3.0)
    assert not connected(ds, 2.9)
    assert not connected(ds)  # at the marks' own level, 1
    assert not connected(ds, 0.7)  # no mark below
    assert connected(_valley())  # the mean's level is the wall


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
    assert float(line_summary(ds, "b").centre_offset) == 1
