"""Interactive figures show the numbers that they were given, under the right names."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest
import xarray as xr

import figures
from drift.analyses.rounds.variance import drift_variances
from figures.interactive.curves import curves
from figures.interactive.look import log_axis, small
from figures.looks import palette, style
from figures.page.summary import summary


def plane(round_index: int = 0, scale: float = 1.0) -> xr.Dataset:
    """A bowl on a 3 x 5 grid with its three models and their mean."""
    alpha, beta = np.array([0.0, 1.0, 2.0]), np.linspace(-1, 3, 5)
    loss = scale * (0.1 + (alpha[:, None] - 1) ** 2 + 0.25 * beta**2)
    ds = xr.Dataset(
        {"loss": (("alpha", "beta"), loss), "error": (("alpha", "beta"), loss / 10)},
        {"alpha": alpha, "beta": beta, "mark": ["client 2", "client 7", "client 0", "mean"]},
        {"isometric": 1, "round": round_index},
    )
    ds["mark_alpha"] = ("mark", [0.0, 2.0, 1.0, 1.0])
    ds["mark_beta"] = ("mark", [0.0, 0.0, 2.0, 2 / 3])
    for name in ("loss", "error"):
        ds[f"mark_{name}"] = ("mark", ds[name].values[0, :4])
        ds[name].attrs.update(long_name=name, units="nats" if name == "loss" else "fraction")
    return ds


def at_grid(z):
    """The points of a finer surface that are those of the grid of `plane`."""
    return np.asarray(z)[::20, ::40]


@pytest.mark.parametrize("lowest", [-5.0, 0.0])
def test_losses_that_are_not_positive_have_linear_heights(lowest):
    ds = plane()
    ds["loss"] = ds.loss + (lowest - float(ds.loss.min()))
    np.testing.assert_allclose(at_grid(figures.surface3d(ds).data[0].z), ds.loss.values.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(figures.explore_contour(ds).data[0].z, ds.loss.values.T, rtol=1e-6)


def test_a_surface_has_the_second_coordinate_along_rows():
    ds = plane()
    drawn = figures.surface3d(ds).data[0]
    np.testing.assert_allclose(at_grid(drawn.z), ds.loss.values.T, rtol=1e-5)
    assert drawn.z.shape == (81, 81) and (drawn.x[-1], drawn.y[0]) == (2, -1)
    np.testing.assert_allclose(drawn.meta["z"], ds.loss.values.T, rtol=1e-6)
    contour = figures.explore_contour(ds).data[0]
    np.testing.assert_allclose(contour.customdata, ds.loss.values.T, rtol=1e-6)
    np.testing.assert_allclose(contour.z, np.log10(ds.loss.values.T), rtol=1e-5, atol=1e-6)


def test_the_loss_has_a_logarithmic_colour_whose_ticks_are_losses():
    drawn = figures.surface3d(plane()).data[0]
    np.testing.assert_allclose(drawn.surfacecolor, np.log10(drawn.z), atol=1e-6)
    assert drawn.cmin == pytest.approx(-1) and 10**drawn.cmax == pytest.approx(plane().loss.max())
    ticks = [float(text) for text in drawn.colorbar.ticktext]
    np.testing.assert_allclose(drawn.colorbar.tickvals, np.log10(ticks), atol=1e-3)
    assert drawn.colorbar.title.text == "loss [nats]"
    assert figures.surface3d(plane()).layout.scene.zaxis.type == "log"


def test_another_metric_is_linear():
    figure = figures.surface3d(plane(), "error")
    np.testing.assert_allclose(figure.data[0].surfacecolor, figure.data[0].z)
    assert figure.layout.scene.zaxis.type == "linear"


def test_marks_are_named_points_that_tell_their_loss():
    ds = plane()
    for figure in (figures.surface3d(ds), figures.explore_contour(ds)):
        points = figure.data[-1]
        assert list(points.text) == ds.mark.values.tolist()
        np.testing.assert_allclose(points.x, ds.mark_alpha)
        np.testing.assert_allclose(points.customdata, ds.mark_loss, rtol=1e-6)
        assert points.marker.symbol[-1] != points.marker.symbol[0]
    names = figures.surface3d(ds).layout.scene.annotations
    assert [name.text for name in names] == ds.mark.values.tolist()
    assert figures.explore_contour(ds).layout.yaxis.scaleanchor == "x"


def test_a_slider_shows_one_round_at_a_time_on_one_colour_scale():
    surfaces = [plane(0, 5.0), plane(4), plane(9, 0.5)]
    for flat in (False, True):
        figure = figures.surface_rounds(surfaces, flat=flat)
        steps = figure.layout.sliders[0].steps
        assert [step.label for step in steps] == ["0", "4", "9"]
        assert [trace.visible for trace in figure.data] == list(steps[-1].args[0]["visible"])
        shown = np.array([step.args[0]["visible"] for step in steps])
        assert (shown.sum(0) == 1).all() and (shown.sum(1) == len(figure.data) / 3).all()
        maps = [trace for trace in figure.data if trace.type in ("surface", "contour")]
        assert len(maps) == (3 if flat else 6)
        assert len({(trace.cmin, trace.cmax) if not flat else (trace.zmin, trace.zmax) for trace in maps}) == 1
    assert not figures.surface3d(plane()).layout.sliders


def test_a_surface_without_values_or_with_one_dimension_is_refused():
    with pytest.raises(LookupError, match="finite value"):
        figures.surface3d(plane() * np.nan)
    with pytest.raises(ValueError, match="needs two"):
        figures.explore_contour(plane().isel(alpha=0))
    with pytest.raises(ValueError, match="no surface"):
        figures.surface_rounds([])


def test_missing_cells_stay_missing():
    ds = plane()
    ds.loss[0, 0] = np.nan
    assert np.isnan(figures.surface3d(ds).data[0].z[0, 0])


def test_curves_are_the_seeds_and_their_mean(runs):
    figure = curves(runs, "client_variance")
    assert len(figure.data) == 2 * 3
    thin, other, mean = figure.data[:3]
    np.testing.assert_allclose(thin.y, runs[0].cached(drift_variances).client_variance, rtol=1e-6)
    np.testing.assert_allclose(mean.y, (thin.y + other.y) / 2, rtol=1e-6)
    assert "seed 5" in thin.hovertemplate and "FedAvg" in thin.hovertemplate and "round" in thin.hovertemplate
    assert [trace.showlegend for trace in figure.data[:3]] == [False, False, True]
    assert len({trace.line.color for trace in figure.data}) == 2
    assert figure.layout.yaxis.type == "log"


def test_an_unknown_quantity_is_named(runs):
    with pytest.raises(ValueError, match=r"no quantity named 'gains'. Did you mean 'gain'\? Known: accuracy"):
        curves(runs, "gains")


def test_figures_are_compact_and_valid(runs):
    figure = curves(runs, "accuracy")
    assert isinstance(figure, go.Figure)
    assert json.loads(figure.to_json())["data"][0]["y"]["dtype"] == "f4"
    assert small([0, 70000]).dtype == np.int32 and small([3, -4]).dtype == np.int16


LOGARITHMIC = ([0.02, 5.0], [0.5, 900.0], [1e-6, 1.0], [2e-7, 3e-6], [3e-8, 5e-8])


@pytest.mark.parametrize("ends", LOGARITHMIC)
def test_logarithmic_axes_are_labelled_alike_in_both_libraries(ends):
    figure, axs = style.panels(1, 1)
    axs[0, 0].plot([0, 1], ends)
    style.logarithmic(axs[0, 0])
    figure.canvas.draw()
    powers = any("10^" in label.get_text() for label in axs[0, 0].get_yticklabels())
    interactive = log_axis(np.array([*ends, np.nan, -1.0]))
    assert powers == (interactive.get("exponentformat") == "power") == (interactive.get("tickformat") != "~g")


def test_numbers_between_powers_of_ten_are_written_in_full():
    axis = log_axis(np.array([2e-7, 3e-6]))
    texts = [text.replace("\N{MULTIPLICATION SIGN}", "*").replace("\N{MINUS SIGN}", "-") for text in axis["ticktext"]]
    assert texts == ["2*10<sup>-7</sup>", "5*10<sup>-7</sup>", "10<sup>-6</sup>", "2*10<sup>-6</sup>"]
    assert axis["tickvals"] == pytest.approx([2e-7, 5e-7, 1e-6, 2e-6])
    assert log_axis(np.array([1e-9, 1.0]))["dtick"] == 1


def test_the_summary_averages_over_seeds(runs):
    ds = summary(runs)
    assert ds.algorithm.values.tolist() == ["fedavg", "fedlaw"]
    last = [float(run.metrics().accuracy.mean()) for run in runs[:2]]
    assert float(ds.accuracy_mean[0]) == pytest.approx(np.mean(last))
    assert float(ds.accuracy_std[0]) == pytest.approx(np.std(last, ddof=1))
    assert ds.seeds.values.tolist() == [2, 2]
    assert all(np.isfinite(ds[name]).all() for name in ds.data_vars)
    assert np.isnan(summary(runs[:1]).accuracy_std[0])


def test_methods_have_their_dashes_and_other_settings_of_one_others(runs):
    figure = curves(runs, "loss")
    dashes = {trace.name: trace.line.dash for trace in figure.data}
    assert dashes == {"FedAvg": "solid", "FedLAW": palette.plotly_dash("fedlaw")} and dashes["FedLAW"] != "solid"
    for name in ("fedavg", "fedlaw", "mine"):
        drawn = [palette.plotly_dash(name, variant) for variant in range(6)]
        assert len(set(drawn)) == 6
        for text, line in zip(drawn, (palette.dash(name, variant) for variant in range(6)), strict=True):
            assert text == "solid" if line == "-" else text == ",".join(f"{2 * part:g}px" for part in line[1])
