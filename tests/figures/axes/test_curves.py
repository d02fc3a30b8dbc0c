from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from figures import style
from figures.axes import curves


def _rounds(seeds: int = 2) -> xr.Dataset:
    base = np.array([[1.0, 2.0, 4.0, 8.0, 16.0], [3.0, 3.0, 3.0, 3.0, 3.0]])
    values = np.stack([base * (1 + 0.5 * seed) for seed in range(seeds)], axis=1)
    return xr.Dataset(
        {"loss": (("algorithm", "seed", "round"), values, {"long_name": "test loss", "units": "nats"})},
        coords={"algorithm": ["ima", "fedavg"], "seed": range(seeds), "round": [0, 2, 3, 5, 9]},
    )


def _ax():
    return Figure().subplots()


def test_each_method_has_its_colour_and_the_mean_of_its_seeds():
    ax = curves.curve(_rounds(), ax=_ax(), variable="loss")
    assert [line.get_label() for line in ax.lines] == ["FedAvg", "IMA"]
    assert [line.get_color() for line in ax.lines] == [style.colour("fedavg"), style.colour("ima")]
    np.testing.assert_allclose(ax.lines[1].get_ydata(), 1.25 * np.array([1, 2, 4, 8, 16]))
    assert ax.lines[1].get_xdata().tolist() == [0, 2, 3, 5, 9]
    assert ax.get_ylabel() == "test loss [nats]"
    assert ax.get_xlabel() == "round"


def test_the_band_is_one_standard_deviation_of_the_seeds():
    ax = curves.curve(_rounds(), ax=_ax(), variable="loss")
    corners = ax.collections[0].get_paths()[0].vertices
    std = np.std([3.0, 4.5], ddof=1)
    np.testing.assert_allclose([corners[:, 1].min(), corners[:, 1].max()], [3.75 - std, 3.75 + std])
    assert curves.band(_rounds()) == "mean and standard deviation of 2 seeds"


def test_one_seed_has_no_band():
    ax = curves.curve(_rounds(1), ax=_ax(), variable="loss")
    assert len(ax.collections) == 0
    assert curves.band(_rounds(1)) is None


def test_missing_rounds_are_left_out_and_a_method_without_values_is_not_drawn():
    ds = _rounds()
    ds["loss"][0, :, 1] = np.nan
    ds["loss"][1] = np.nan
    ax = curves.curve(ds, ax=_ax(), variable="loss")
    (line,) = ax.lines
    assert line.get_xdata().tolist() == [0, 3, 5, 9]


def test_a_method_with_one_of_two_seeds_is_drawn_without_width():
    ds = _rounds()
    ds["loss"][0, 1] = np.nan
    ax = curves.curve(ds, ax=_ax(), variable="loss")
    assert ax.lines[1].get_ydata().tolist() == [1, 2, 4, 8, 16]


def test_nothing_to_draw_is_an_error():
    with pytest.raises(LookupError, match="loss has no values"):
        curves.curve(_rounds() * np.nan, ax=_ax(), variable="loss")


def test_a_single_run_is_drawn_with_the_given_look_and_left_unchanged():
    ds = _rounds().isel(algorithm=0, seed=0, drop=True)
    before = ds.copy(deep=True)
    ax = curves.curve(ds, ax=_ax(), variable="loss", color="black", linestyle="--", log=True)
    assert to_rgba(ax.lines[0].get_color()) == to_rgba("black")
    assert ax.lines[0].get_linestyle() == "--"
    assert ax.get_yscale() == "log"
    xr.testing.assert_identical(ds, before)


def test_deviation_equals_numpy():
    values = xr.DataArray(np.random.default_rng(0).normal(size=(3, 5)), dims=("seed", "round"))
    np.testing.assert_allclose(curves.deviation(values, "seed"), values.values.std(0, ddof=1))
