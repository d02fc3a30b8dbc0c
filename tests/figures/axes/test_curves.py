from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from scipy import stats

from figures.axes import curves
from figures.looks import look, style


def _rounds(seeds: int = 2) -> xr.Dataset:
    base = np.array([[1.0, 2.0, 4.0, 8.0, 16.0], [3.0, 3.0, 3.0, 3.0, 3.0]])
    values = np.stack([base * (1 + 0.5 * seed) for seed in range(seeds)], axis=1)
    return xr.Dataset(
        {"loss": (("algorithm", "seed", "round"), values, {"long_name": "test loss", "units": "nats"})},
        coords={"algorithm": ["ima", "fedavg"], "seed": range(seeds), "round": [0, 2, 3, 5, 9]},
    )


def _ax():
    return Figure().subplots()


def _named(ax):
    """The lines of the legend: the means."""
    return [line for line in ax.lines if not line.get_label().startswith("_")]


def test_each_method_has_its_colour_its_dashes_and_the_mean_of_its_seeds():
    ax = curves.curve(_rounds(), ax=_ax(), variable="loss")
    means = _named(ax)
    assert [line.get_label() for line in means] == ["FedAvg", "IMA"]
    assert [line.get_color() for line in means] == [style.colour("fedavg"), style.colour("ima")]
    assert [line.is_dashed() for line in means] == [False, True]
    np.testing.assert_allclose(means[1].get_ydata(), 1.25 * np.array([1, 2, 4, 8, 16]))
    assert means[1].get_xdata().tolist() == [0, 2, 3, 5, 9]
    assert ax.get_ylabel() == "test loss [nats]"
    assert ax.get_xlabel() == "round"


def test_seeds_below_five_are_thin_lines_in_the_colour_of_their_method():
    ax = curves.curve(_rounds(), ax=_ax(), variable="loss")
    thin = [line for line in ax.lines if line not in _named(ax)]
    assert [line.get_ydata().tolist() for line in thin[2:]] == [[1, 2, 4, 8, 16], [1.5, 3, 6, 12, 24]]
    assert {line.get_color() for line in thin[2:]} == {style.colour("ima")}
    assert max(line.get_linewidth() for line in thin) < min(line.get_linewidth() for line in _named(ax))
    assert not ax.collections
    assert curves.band(_rounds()) == "thin lines: 2 seeds, thick: their mean"


def test_five_seeds_have_the_t_interval_of_their_mean():
    ds = _rounds(5)
    with look.drawing(look.Look()):
        ax = curves.curve(ds, ax=_ax(), variable="loss")
        assert curves.band(ds) == "mean and 95 % t interval of 5 seeds"
    corners = ax.collections[0].get_paths()[0].vertices
    ends = stats.t.interval(0.95, 4, loc=6.0, scale=np.std([3, 4.5, 6, 7.5, 9], ddof=1) / np.sqrt(5))
    np.testing.assert_allclose([corners[:, 1].min(), corners[:, 1].max()], ends)


def test_markers_at_a_slice_of_the_rounds_have_the_interval_as_bars():
    ds = _rounds(5).isel(algorithm=0, drop=True)
    band = curves.curve(ds, ax=_ax(), variable="loss").collections[0].get_paths()[0].vertices
    ax = curves.curve(ds, ax=_ax(), variable="loss", marker="s", markevery=slice(1, None, 2))
    (bars,) = ax.containers
    assert len(ax.collections) == 1, "no band"
    for x, segment in zip((2, 5), bars[2][0].get_segments(), strict=True):
        ends = band[band[:, 0] == x][:, 1]
        np.testing.assert_allclose(segment, [[x, ends.min()], [x, ends.max()]])


def test_a_band_of_accuracies_ends_at_1_and_says_so():
    values = xr.DataArray([[0.5], [0.99], [0.99], [0.99], [1.0]] * np.ones(2), dims=("seed", "round"), name="accuracy")
    with look.drawing(look.Look()) as drawn:
        curves.line_with_band(values.assign_coords(round=[0, 1]), ax=(ax := _ax()), over="round")
        curves.line_with_band(values.rename("loss").assign_coords(round=[0, 1]), ax=(free := _ax()), over="round")
    assert ax.collections[0].get_paths()[0].vertices[:, 1].max() == 1
    assert free.collections[0].get_paths()[0].vertices[:, 1].max() > 1
    assert "intervals end at accuracy 1" in drawn.notes


def test_a_band_that_is_asked_for_is_one_standard_deviation():
    with look.drawing(look.read(seeds="band")) as part:
        ax = curves.curve(_rounds(), ax=_ax(), variable="loss")
        assert curves.band(_rounds()) == "mean and standard deviation of 2 seeds"
    assert "seeds" in part.taken
    corners = ax.collections[0].get_paths()[0].vertices
    std = np.std([3.0, 4.5], ddof=1)
    np.testing.assert_allclose([corners[:, 1].min(), corners[:, 1].max()], [3.75 - std, 3.75 + std])


def test_a_moving_mean_longer_than_a_line_is_refused():
    with look.drawing(look.read(smooth=_rounds().sizes["round"])):
        curves.curve(_rounds(), ax=_ax(), variable="loss")
    with look.drawing(look.read(smooth=500)), pytest.raises(ValueError, match="smooth is 500, and a line has"):
        curves.curve(_rounds(), ax=_ax(), variable="loss")


def test_what_is_said_of_seeds_is_said_once():
    with look.drawing(look.Look()) as part:
        for seeds, log in ((6, False), (3, True), (5, True), (4, False)):
            values = xr.DataArray(np.arange(1.0, 2 * seeds + 1).reshape(seeds, 2), dims=("seed", "round"), name="loss")
            curves.line_with_band(values.assign_coords(round=[0, 1]), ax=_ax(), over="round", log=log)
    shown = "mean and 95 % t interval of 5 or 6 seeds; thin lines: 3 or 4 seeds, thick: their mean"
    assert part.noted() == f"{shown}; geometric on a logarithmic axis"


def test_bands_on_a_logarithmic_axis_are_geometric():
    """A seed that is 100 times smaller draws an arithmetic band below 0, and no false spike here."""
    values = xr.DataArray([[1.0, 1.0], [0.01, 1.0]], {"round": [0, 1]}, ["seed", "round"], name="loss")
    with look.drawing(look.read(seeds="band")) as part:
        ax = curves.curve(values.to_dataset(), ax=_ax(), variable="loss", log=True)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.1, 1.0])
    reach = np.exp(np.std(np.log([1.0, 0.01]), ddof=1))
    corners = ax.collections[0].get_paths()[0].vertices
    np.testing.assert_allclose([corners[:, 1].min(), corners[:, 1].max()], [0.1 / reach, 0.1 * reach])
    assert part.notes == ["mean and standard deviation of 2 seeds", "geometric on a logarithmic axis"]


def test_smoothed_lines_are_the_moving_mean_of_each_seed():
    with look.drawing(look.read(smooth=3)) as part:
        ax = curves.curve(_rounds(1), ax=_ax(), variable="loss")
    np.testing.assert_allclose(_named(ax)[1].get_ydata(), [1, 3, 3, 8, 16])  # of rounds 0, 2, 3, 5 and 9
    assert part.notes == ["moving mean of 3 rounds"]


def test_one_seed_has_no_band():
    ax = curves.curve(_rounds(1), ax=_ax(), variable="loss")
    assert len(ax.collections) == 0
    assert len(ax.lines) == 2
    assert curves.band(_rounds(1)) is None


def test_missing_rounds_are_left_out_and_a_method_without_values_is_not_drawn():
    ds = _rounds()
    ds["loss"][0, :, 1] = np.nan
    ds["loss"][1] = np.nan
    ax = curves.curve(ds, ax=_ax(), variable="loss")
    (line,) = _named(ax)
    assert line.get_xdata().tolist() == [0, 3, 5, 9]


def test_a_method_with_one_of_two_seeds_is_one_line():
    ds = _rounds()
    ds["loss"][0, 1] = np.nan
    ax = curves.curve(ds, ax=_ax(), variable="loss")
    assert _named(ax)[1].get_ydata().tolist() == [1, 2, 4, 8, 16]
    assert len(ax.lines) == 4


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


@pytest.mark.parametrize(
    ("values", "scale", "remarks"),
    [
        ([1.0, 0.5, -0.2, 0.0], "linear", 0),
        ([1.0, 0.5, 0.0, 0.1], "log", 1),
        ([1.0, 0.5, 0.2, 0.1], "log", 0),
    ],
)
def test_a_loss_that_is_negative_has_a_linear_axis_and_one_of_zero_a_gap_that_is_said(values, scale, remarks):
    ds = xr.Dataset({"loss": (("algorithm", "round"), [values], {"units": "1"})}, {"algorithm": ["fedavg"]})
    with look.drawing(look.read()) as part:
        ax = curves.curve(ds, ax=_ax(), variable="loss", log=True)
    gaps = [text for text in part.notes if "a value is 0" in text]
    assert ax.get_yscale() == scale and len(gaps) == remarks
