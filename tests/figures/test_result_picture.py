"""`.plot()` and `.plotly()` draw the picture of a result: labelled, with its marks and one colour bar."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import plotly.graph_objects as go
import pytest
import torch
import xarray as xr
from matplotlib import pyplot
from matplotlib.colors import to_hex
from torch import nn

import landscape
from figures.looks import palette, style
from figures.pictures.result_picture import plot, plotly


@pytest.fixture(scope="module")
def task():
    inputs = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    return landscape.make_task(nn.Linear(4, 3), nn.CrossEntropyLoss(), (inputs, inputs[:, :3].argmax(1)))


def models(count: int) -> list[nn.Module]:
    return [(torch.manual_seed(seed), nn.Linear(4, 3))[1] for seed in range(count)]


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


RESULTS = {
    "plane": (lambda task: landscape.surface(task, *models(3)), ("along u", "along v", 2), go.Surface),
    "trajectory": (lambda task: landscape.surface(task, *models(6)), ("along u", "along v", 2), go.Surface),
    "random plane": (lambda task: landscape.surface(task, *models(1)), ("along u [filter norms]", "", 2), go.Surface),
    "line": (lambda task: landscape.surface(task, *models(2)), ("t", "loss [nats]", 1), go.Scatter),
    "curve": (
        lambda task: landscape.along(task, landscape.connecting_curve(task, *models(2), steps=2)),
        ("t", "loss [nats]", 1),
        go.Scatter,
    ),
    "aligned": (lambda task: landscape.aligned_barrier(task, *models(2)), ("t", "loss [nats]", 1), go.Scatter),
    "eigenvalues": (lambda task: landscape.hessian(task, models(1)[0]), ("rank", "eigenvalue", 1), go.Scatter),
    "density": (lambda task: landscape.density(task, models(1)[0]), ("eigenvalue", "spectral density", 1), go.Scatter),
    "layers": (lambda task: landscape.layer_eigenvalues(task, models(1)[0]), ("parameter", "", 1), go.Scatter),
    "pairs": (lambda task: landscape.pairwise_barriers(task, models(3)), ("", "", 2), go.Heatmap),
    "simplex": (
        lambda task: landscape.surface(task, landscape.simplex(models(3), task=task)),
        ("along u", "along v", 2),
        go.Surface,
    ),
}


@pytest.mark.parametrize("what", RESULTS)
def test_a_result_is_drawn_in_one_call(what, task):
    compute, (across, up, count), trace = RESULTS[what]
    ds = compute(task)
    ax = ds.plot()
    assert across in ax.get_xlabel() and up in ax.get_ylabel()
    assert len(ax.figure.axes) == count  # the map and its one bar
    ax.figure.canvas.draw()
    assert isinstance(ds.plotly().data[0], trace)
    assert ds.plot() is not ax  # two results are not drawn into one another


def test_marks_are_named_and_a_trajectory_is_a_path(task):
    names = {text.get_text() for text in landscape.surface(task, *models(3)).plot().texts}
    assert {"1", "2", "3"} <= names
    ds = landscape.surface(task, *models(6))
    ax = ds.plot()
    path = next(line for line in ax.lines if len(line.get_xdata()) == 6)
    np.testing.assert_array_equal(path.get_xdata(), ds.mark_alpha)
    assert not [text for text in ax.texts if text.get_text() in map(str, ds.mark.values)]
    flat = ds.assign_coords(alpha=20 * ds.alpha).assign(mark_alpha=20 * ds.mark_alpha).plot()
    width, height = flat.figure.get_size_inches()
    assert height > 0.6 * width and flat.get_aspect() == "auto", "a long path is no strip"


def test_a_figure_is_as_tall_as_its_map_and_all_texts_are_inside(task):
    ds = landscape.surface(task, landscape.plane(task, *models(3), points=5))
    flat = ds.assign_coords(alpha=ds.alpha * 5)
    ax = flat.plot()
    figure = ax.figure
    figure.canvas.draw()
    bounds, inside = figure.bbox, figure.get_tightbbox(figure.canvas.get_renderer()).transformed(figure.dpi_scale_trans)
    assert figure.get_figheight() < 2.4
    assert inside.height > 0.9 * bounds.height
    assert inside.y0 >= -1 and inside.y1 <= bounds.height + 1
    assert inside.x1 <= bounds.width + 1


def test_a_variable_and_axes_can_be_chosen(task):
    ds, (_, ax) = landscape.surface(task, *models(2)), pyplot.subplots()
    assert ds.plot(ax=ax, variable="error") is ax and ax.get_ylabel() == "error"
    with pytest.raises(ValueError, match=r"no variable 'losss' that can be drawn; this result has loss, error\."):
        ds.plot(variable="losss")


def test_a_result_without_a_picture_says_its_numbers(task):
    with pytest.raises(ValueError, match=r"no variable with a dimension, so no picture: trace = "):
        landscape.trace(task, models(1)[0]).plot()
    with pytest.raises(ValueError, match=r"dimensions a, b, c, for which"):
        xr.Dataset({"x": (("a", "b", "c"), np.zeros((2, 2, 3)))}).plot()


def test_a_count_by_names_is_a_table_of_colours_and_dimensions_of_one_entry_go():
    counts = np.arange(12.0).reshape(1, 3, 4)
    ds = xr.Dataset({"error": (("model", "class"), np.zeros((1, 3))), "count": (("model", "class", "guess"), counts)})
    ds = ds.assign_coords({"class": list("abc"), "guess": list("abcd")})
    image = ds.plot().images[0].get_array()
    assert np.array_equal(image, counts[0])
    trace = ds.plotly().data[0]
    assert trace.type == "heatmap"
    assert np.allclose(np.asarray(trace.z, float), counts[0])
    assert (list(trace.x), list(trace.y)) == (list("abcd"), list("abc"))


def test_many_entries_over_rounds_are_rows_and_few_are_lines():
    rounds = np.arange(5)
    for entries in (6, 7):
        values = np.random.default_rng(0).normal(size=(5, entries))
        ds = xr.Dataset({"x": (("round", "layer"), values)}, {"round": rounds, "layer": range(entries)})
        ax = ds.plot()
        shown = [line for line in ax.lines if line.get_visible()]
        assert (len(shown), len(ax.images)) == ((6, 0) if entries == 6 else (0, 1))
        if entries == 7:
            assert np.array_equal(ax.images[0].get_array(), values.T)


def test_no_line_joins_clients_and_a_density_has_a_logarithmic_axis():
    ds = xr.Dataset({"loss": ("client", [3.0, 1.0, 2.0])}, {"client": [30, 4, 11]})
    ax = ds.plot()
    assert ax.lines[0].get_linestyle() == "None"
    assert [text.get_text() for text in ax.get_xticklabels()] == ["30", "4", "11"]
    assert (ds.plotly().data[0].mode, ds.plotly().layout.xaxis.type) == ("markers", "category")
    density = xr.Dataset({"density": ("value", [1e-3, 2.0, 1e-9])}, {"value": [-1.0, 0.0, 5.0]})
    assert density.plot().get_yscale() == "log"
    assert density.plot().get_ylim() == pytest.approx((2e-8, 4.0))
    assert density.plotly().layout.yaxis.range == pytest.approx((np.log10(2e-8), np.log10(4)))


def test_single_eigenvalues_of_a_density_are_stems_and_the_line_is_the_bulk():
    columns = {"density": [1e-3, 2.0, 3e-5], "bulk": [1e-3, 2.0, 0.0]}
    ds = xr.Dataset({name: ("value", values) for name, values in columns.items()}, {"value": [-1.0, 0.0, 5.0]})
    ds = ds.assign(outlier=("outlier_rank", [5.0, np.nan]), outlier_density=("outlier_rank", [3e-5, np.nan]))
    ax = ds.plot()
    assert ax.lines[0].get_ydata().tolist() == columns["bulk"]
    (stem,) = ax.collections[0].get_segments()
    assert stem[1].tolist() == [5.0, 3e-5] and stem[0][1] < ax.get_ylim()[0]
    assert "stems: single eigenvalues" in ax.get_ylabel()
    curve, stems = ds.plotly().data
    assert list(curve.y) == columns["bulk"]
    assert list(stems.x[:2]) == [5.0, 5.0] and list(stems.y[:2]) == pytest.approx([2e-8, 3e-5])
    both = xr.concat([ds, ds * 2], "round").assign_coords(round=[0, 9])
    grids = ("round", "mark"), np.array([ds.value.values, 3 * ds.value.values])
    both = both.rename(value="mark").drop_vars("mark").assign(eigenvalue=grids)  # as `density_rounds` has it
    assert [line.get_xdata().tolist() for line in both.plot().lines[::2]] == [[-1.0, 0.0, 5.0], [-3.0, 0.0, 15.0]]
    assert [text.get_text() for text in both.plot().get_legend().get_texts()] == ["round 0", "round 9"]
    assert [trace.name for trace in both.plotly().data if trace.showlegend] == ["round 0", "round 9"]


def test_methods_of_xarray_stay():
    ds = xr.Dataset({"x": ("t", [1.0, 2.0]), "y": ("t", [2.0, 1.0])})
    assert ds.plot.scatter(x="x", y="y") is not None
    assert ds.x.plot()[0].get_ydata().tolist() == [1.0, 2.0]


def test_landscape_imports_no_plotting_package_until_a_picture_is_drawn():
    code = (
        "import sys, torch, landscape\n"
        "data = torch.ones(3, 2), torch.tensor([0, 1, 0])\n"
        "task = landscape.make_task(torch.nn.Linear(2, 2), torch.nn.CrossEntropyLoss(), data)\n"
        "ds = landscape.hessian(task, task.theta, k=1)\n"
        "assert not {'matplotlib', 'plotly', 'figures', 'drift'} & set(sys.modules)\n"
        "ds.plot()\n"
        "assert 'matplotlib' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_numbers_of_pairs_are_matrices_with_zero_in_the_middle_of_signed_colours():
    values = xr.DataArray([[1.0, -0.2, 0.3], [-0.2, 1.0, -0.7], [0.4, 0.1, 1.0]], dims=("client", "client_other"))
    ds = xr.Dataset({"cosine": values}, {"client": [3, 7, 9], "client_other": [3, 7, 9]})
    image = plot(ds, ax=style.panels()[1][0, 0]).images[0]
    np.testing.assert_allclose(image.get_array(), values.values.T)
    assert (image.norm.vmin, image.norm.vmax) == (-1, 1) and image.cmap.name == palette.SIGNED
    (cells,) = plotly(ds).data
    assert cells.type == "heatmap" and (cells.zmin, cells.zmax) == (-1, 1)
    np.testing.assert_allclose(cells.z, values.values.T, rtol=1e-6)
    assert [*cells.x] == [*cells.y] == ["3", "7", "9"]
    assert (plotly(abs(ds)).data[0].zmin, plot(abs(ds), ax=style.panels()[1][0, 0]).images[0].norm.vmin) == (0, 0)


def test_values_between_gaps_and_single_rounds_are_seen():
    values = [[0.2, 0.4, np.nan, 0.5], [0.1, np.nan, 0.3, np.nan], [np.nan] * 4]
    ds = xr.Dataset({"accuracy": (("client", "round"), values)}, {"client": [3, 5, 8], "round": [0, 1, 2, 3]})
    seen = {}
    for line in plot(ds).get_lines():
        finite = np.isfinite(line.get_ydata())
        joined = np.flatnonzero(finite[1:] & finite[:-1])
        marked = line.get_markevery() if line.get_marker() == "o" else []
        seen[line.get_label()] = sorted({*joined, *(joined + 1), *marked})
    assert seen == {"client 3": [0, 1, 3], "client 5": [0, 2], "client 8": []}
    axes = pyplot.subplots()[1]
    axes.set_axis_off()
    plot(ds.isel(client=0, round=[3]), ax=axes)
    axes.figure.canvas.draw()
    assert np.asarray(axes.figure.canvas.buffer_rgba())[:, :, :3].min() < 200


def test_histograms_are_lines_over_their_values():
    ds = xr.Dataset({"count": (("round", "value"), np.ones((2, 50)))}, {"round": [0, 9], "value": np.arange(50) / 7})
    assert [line.get_label() for line in plot(ds).get_lines()] == ["round 0", "round 9"]
    assert [trace.name for trace in plotly(ds).data] == ["round 0", "round 9"]


def test_a_constant_is_not_the_usual_variable_and_few_strides_are_lines_over_rounds():
    coords = {"round": [0, 5, 9], "value": ("value", [1, 4], {"long_name": "stride"})}
    names = {"climb": np.zeros((3, 2)), "minima": np.array([[1.0, 2], [1, 1], [3, 2]])}
    ds = xr.Dataset({name: (("round", "value"), numbers) for name, numbers in names.items()}, coords)
    ax = plot(ds)
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("minima", "round")
    first, second = ax.get_lines()
    assert [first.get_label(), second.get_label()] == ["stride 1", "stride 4"]
    np.testing.assert_array_equal(second.get_ydata(), [2, 1, 2])
    assert [to_hex(line.get_color()) for line in (first, second)] == list(plotly(ds).layout.colorway)
    assert plot(ds[["climb"]]).get_ylabel() == "climb"


def test_a_simplex_has_straight_edges_in_three_dimensions(task):
    ds = landscape.surface(task, landscape.simplex(models(3), step=0.25, task=task))
    surface, below = (trace for trace in plotly(ds).data if trace.type == "surface")
    for sheet in (surface, below):
        x, y, z = (np.asarray(sheet[name]) for name in "xyz")
        there = np.isfinite(z)
        assert (x + y)[there].max() == pytest.approx(1)
        whole = there[1:, 1:] & there[1:, :-1] & there[:-1, 1:] & there[:-1, :-1]  # cells that plotly draws
        assert np.abs(_areas(x, y))[whole].sum() == pytest.approx(0.5)
    x, y = np.asarray(surface.x), np.asarray(surface.y)
    nearest = [np.hypot(x - a, y - b).argmin() for a, b in ((1, 0), (0, 1), (0, 0))]
    np.testing.assert_allclose(np.asarray(surface.z).ravel()[nearest], ds.mark_loss[:3], rtol=1e-4)


def _areas(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Area of each cell of a grid of points, by its diagonals."""
    first, second = (
        (x[1:, 1:] - x[:-1, :-1], y[1:, 1:] - y[:-1, :-1]),
        (x[1:, :-1] - x[:-1, 1:], y[1:, :-1] - y[:-1, 1:]),
    )
    return (first[0] * second[1] - first[1] * second[0]) / 2
