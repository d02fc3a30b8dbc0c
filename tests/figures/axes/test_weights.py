from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from figures.axes import curves, weights
from figures.gallery import regularisation_rounds
from figures.looks import style


def _ax():
    return Figure().subplots()


def test_shrink_shows_plain_averaging_as_a_line_at_one():
    ds = xr.Dataset(
        {"gamma": (("algorithm", "round"), [[0.9, 0.95, 0.97]])}, coords={"algorithm": ["fedlaw"], "round": [0, 1, 2]}
    )
    ax = curves.curve(ds, ax=_ax(), variable="gamma", level=1)
    assert ax.lines[0].get_ydata().tolist() == [0.9, 0.95, 0.97]
    assert ax.lines[0].get_color() == style.colour("fedlaw")
    assert list(ax.lines[1].get_ydata()) == [1, 1]


def test_shares_have_rounds_across_and_clients_by_mean_weight_up_with_absent_ones_masked():
    values = np.array([[0.2, np.nan, 0.8, np.nan, np.nan], [np.nan, 0.4, np.nan, 0.6, np.nan]])
    ds = xr.Dataset({"weights": (("round", "client"), values)}, coords={"round": [0, 1], "client": range(5)})
    (mesh,) = weights.shares(ds, ax=_ax()).collections
    drawn = mesh.get_array()
    assert drawn.shape == (5, 2)
    assert np.ma.getmaskarray(drawn).sum() == 6
    assert drawn[:4].compressed().tolist() == [0.2, 0.4, 0.6, 0.8]
    assert mesh.get_clim() == (0, 0.8)


@pytest.mark.parametrize(("lowest", "reach"), [(0.25, 4), (0.0, 2), (1e-9, weights.MOST)])
def test_ratios_of_weights_are_logarithmic_about_one_and_a_line_parts_those_below(lowest, reach):
    values = np.array([[2.0, 0.5, lowest], [2.0, 0.9, 1.0]])
    ds = xr.Dataset({"weight_ratio": (("round", "client"), values)}, coords={"round": [0, 1], "client": range(3)})
    ax = weights.shares(ds, ax=_ax(), variable="weight_ratio")
    (mesh,) = ax.collections
    assert mesh.get_clim() == pytest.approx((1 / reach, reach))
    np.testing.assert_allclose(mesh.norm([1 / reach, 1, reach]), [0, 0.5, 1], atol=1e-9)
    assert list(ax.lines[0].get_ydata()) == [1.5, 1.5], "two clients of three have a mean below 1"
    assert mesh.get_array().min() > 0, "a weight of 0 has the colour of the lowest"
    nothing = weights.shares(0 * ds, ax=_ax(), variable="weight_ratio").collections[0]
    assert nothing.get_clim() == (1 / weights.MOST, weights.MOST), "no weight at all"


def test_balance_leaves_out_rounds_without_shrinking():
    ds = xr.Dataset(
        {"optimisation": ("round", [1.0, 2.0, 3.0]), "regularisation": ("round", [0.0, 0.1, 0.2])},
        coords={"round": [0, 1, 2]},
    )
    update, ax, *_ = regularisation_rounds.draw(ds.assign(ratio=ds.optimisation, gamma=ds.optimisation)).axes
    assert ax.lines[0].get_xdata().tolist() == [1, 2]
    assert ax.get_yscale() == "log" and ax.get_ylim() == update.get_ylim()


def _ratios(times: int) -> xr.Dataset:
    ratios = [10.0, 12, 14, 20, 24] * times
    return xr.Dataset(
        {"ratio": ("sample", ratios, {"long_name": "ratio r", "units": "1"})},
        coords={"algorithm": ("sample", ["fedlaw", "fedlaw-gws", "fedlaw", "fedlaw", "fedlaw-gws"] * times)},
    )


def test_a_histogram_holds_every_run_once_and_marks_the_mean():
    ds = _ratios(4)
    ax = weights.histogram(ds, ax=_ax())
    assert sum(bar.get_height() for bar in ax.patches) == 20
    assert ax.lines[0].get_xdata()[0] == 16
    assert ax.lines[0].get_label() == "mean 16 of 20 runs"
    assert ax.get_xscale() == "linear"
    spread = weights.histogram(ds.assign(ratio=ds.ratio ** ([1, 1, 1, 1, 3] * 4)), ax=_ax())
    assert spread.get_xscale() == "log"
    assert sum(bar.get_height() for bar in spread.patches) == 20


def test_few_runs_are_a_dot_each_in_the_row_of_their_method():
    ax = weights.histogram(_ratios(1), ax=_ax())
    assert not ax.patches
    assert [line.get_xdata().tolist() for line in ax.lines[:2]] == [[10, 14, 20], [12, 24]]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["FedLAW", "FedLAW (GWS)"]
    assert ax.lines[2].get_label() == "mean 16 of 5 runs"


def _epochs() -> xr.Dataset:
    return xr.Dataset(
        {
            "gamma": (("round", "epoch"), [[1.0, 0.9, 0.8], [1.0, 0.97, 0.96]]),
            "lambda": (("epoch", "client"), np.arange(12.0).reshape(3, 4) / 12),
            "gamma_settled": ("round", [3.0, 2.0]),
        },
        coords={"round": [0, 7], "epoch": [1, 2, 3], "client": [4, 1, 8, 0]},
    )


def test_epochs_have_a_line_a_round_and_the_settling_of_the_last():
    ax = weights.epochs(_epochs(), ax=_ax(), settled="gamma_settled")
    assert [line.get_label() for line in ax.lines[:2]] == ["round 0", "round 7"]
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), [1, 0.97, 0.96])
    assert set(ax.lines[2].get_xdata()) == {2}


def test_epochs_of_clients_are_pale_lines():
    ax = weights.epochs(_epochs(), ax=_ax(), variable="lambda")
    assert [line.get_color() for line in ax.lines] == [style.CLIENT] * 4
    np.testing.assert_allclose(ax.lines[2].get_ydata(), np.array([2, 6, 10]) / 12)


def test_correlations_are_points_with_intervals_from_the_top():
    ds = xr.Dataset(
        {
            "pearson": ("sample", [0.4, np.nan, -0.1]),
            "low": ("sample", [0.1, np.nan, np.nan]),
            "high": ("sample", [0.6, np.nan, np.nan]),
        }
    )
    ax = weights.correlations(ds, ax=_ax())
    assert [note.get_text() for note in ax.texts] == [".40 [.10, .60]", "undefined", "-.10"]
    assert [tuple(line.get_xydata()[0]) for line in ax.lines[:2]] == [(0.4, 0), (-0.1, 2)]
    hollow = weights.correlations(ds.assign(low=-ds.high), ax=_ax()).lines[0]
    assert [dot.get_markerfacecolor() for dot in (ax.lines[0], hollow)] == ["#333333", "white"], "0 is inside"
    (bar,) = ax.collections[:1]
    np.testing.assert_allclose(bar.get_segments()[0][:, 0], [0.1, 0.6])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
