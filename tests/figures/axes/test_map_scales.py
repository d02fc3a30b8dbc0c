from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from small_maps import ax_alone, bowl

from figures.axes import surfaces
from figures.axes.colour_bars import round_numbers
from figures.gallery import _planes
from figures.looks import style

pytestmark = pytest.mark.seconds


def _bars(figure):
    return [ax for ax in figure.axes if ax.get_label() == "<colorbar>"]


@pytest.mark.parametrize("variable", ["loss", "error"])
def test_contour_has_a_colour_bar_unless_levels_are_shared(variable):
    alone = surfaces.contour(bowl(), ax=ax_alone(), variable=variable).figure
    (label,) = [bar.get_ylabel() for bar in _bars(alone)]
    values = bowl()[variable]
    above = float((values > surfaces.common_levels(values, log=variable == "loss")[-1]).mean())
    assert label == f"{style.text(values)}\n({100 * above:.0f} % above the scale)"
    levels = surfaces.common_levels(bowl()[variable])
    assert not _bars(surfaces.contour(bowl(), ax=ax_alone(), variable=variable, levels=levels).figure)
    assert len(_bars(surfaces.contour(bowl(), ax=ax_alone(), variable=variable, levels=levels, bar=True).figure)) == 1
    assert not _bars(surfaces.contour(bowl(), ax=ax_alone(), variable=variable, bar=False).figure)


@pytest.mark.parametrize("top", [0.431, 0.4301, 430.0])
def test_ticks_of_a_colour_bar_are_told_apart(top):
    figure = Figure()
    surfaces.colorbar(figure, [figure.subplots()], np.geomspace(0.43, top, 14), "loss")
    (bar,) = _bars(figure)
    texts = [tick.get_text() for tick in bar.get_yticklabels()]
    assert len(set(texts)) == len(texts) > 2
    assert [float(text) for text in texts] == pytest.approx(bar.get_yticks().tolist())


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("layout", ["constrained", None])
def test_a_colour_bar_is_as_tall_as_its_maps_are_drawn(layout, columns):
    figure = Figure(figsize=(6.9, 4), layout=layout)
    axs = figure.subplots(1, columns, squeeze=False)[0]
    levels = surfaces.common_levels(bowl()["loss"])
    for ax in axs:
        surfaces.contour(bowl(), ax=ax, levels=levels)
    surfaces.colorbar(figure, axs, levels, "loss")
    figure.draw_without_rendering()
    (bar,), drawn, cell = _bars(figure), axs[-1].get_position(), axs[-1].get_position(original=True)
    tip = 1.05  # the triangle above the bar takes a twentieth of its height
    assert drawn.height < 0.7 * cell.height
    assert (bar.get_position().y0, bar.get_position().height * tip) == pytest.approx((drawn.y0, drawn.height))
    assert 0 < bar.get_position().x0 - drawn.x1 < 0.1


@pytest.mark.parametrize("height", [0.4, 0.6, 4.0])
def test_labels_of_a_colour_bar_do_not_touch(height):
    figure = Figure(figsize=(4, height))
    surfaces.colorbar(figure, [figure.add_axes((0, 0, 0.8, 1))], np.geomspace(0.43, 2.4, 14), "loss")
    figure.draw_without_rendering()
    (bar,) = _bars(figure)
    boxes = [label.get_window_extent() for label in bar.get_yticklabels()]
    assert all(low.y1 <= high.y0 for low, high in pairwise(boxes))
    every = round_numbers(0.43, 2.4, log=True)
    assert (len(boxes) == len(every)) == (height > 0.5)


@pytest.mark.parametrize(
    ("low", "high", "log", "ticks"),
    [
        (0.39, 4.1, True, [0.5, 0.7, 1, 1.5, 2, 3]),
        (0.001, 100, True, [0.001, 0.01, 0.1, 1, 10, 100]),
        (0.0, 0.87, False, [0, 0.2, 0.4, 0.6, 0.8]),
    ],
)
def test_ticks_of_a_colour_bar_are_round(low, high, log, ticks):
    assert round_numbers(low, high, log=log) == pytest.approx(ticks)


def test_a_colour_bar_stands_beside_maps_without_axes_and_not_beside_empty_cells():
    figure = Figure(figsize=(6.9, 4), layout="constrained")
    (first, second), (third, rest) = figure.subplots(2, 2)
    levels = surfaces.common_levels(bowl()["loss"])
    for ax in (first, second, third):
        surfaces.contour(bowl(), ax=ax, levels=levels)
        ax.set_axis_off()
    rest.set_axis_off()
    surfaces.colorbar(figure, [first, second, third, rest], levels, "loss")
    figure.draw_without_rendering()
    (bar,) = _bars(figure)
    assert bar.get_position().y0 == pytest.approx(third.get_position().y0)
    assert bar.get_position().x0 > second.get_position().x1


@pytest.mark.parametrize("variable", ["loss", "error"])
def test_maps_of_global_models_are_never_one_colour_beside_those_of_clients(variable):
    clients = bowl().assign_attrs(analysis="round_plane")
    globals_ = bowl().assign_attrs(analysis="global_plane")
    globals_[variable] = 0.1 + globals_[variable] / 1000
    figure = Figure()
    axs = figure.subplots(1, 3)
    _planes.maps(figure, axs, [clients, clients, globals_], variable)
    maps = [ax.collections[0] for ax in axs]
    assert tuple(maps[0].levels) == tuple(maps[1].levels) != tuple(maps[2].levels)
    low, high = float(globals_[variable].min()), float(globals_[variable].max())
    assert sum(low <= level <= high for level in maps[2].levels) >= len(maps[2].levels) - 1
    assert len(_bars(figure)) == 2


def test_bars_of_a_row_lie_below_the_maps_of_their_kind():
    figure = Figure(figsize=(7, 3), layout="constrained")
    axs = figure.subplots(1, 3)
    clients, globals_ = (bowl().assign_attrs(analysis=name) for name in ("round_plane", "global_plane"))
    _planes.maps(figure, axs, [clients, clients, globals_], "loss")
    figure.draw_without_rendering()
    boxes = [bar.get_position() for bar in _bars(figure)]
    assert all(box.y1 < axs[0].get_position().y0 for box in boxes)
    assert boxes[0].x1 < axs[2].get_position().x0 <= boxes[1].x0 + 0.05


@pytest.mark.parametrize(("top", "told"), [(0.9, ["above each scale", ""]), (1.0, ["", ""])])
def test_the_first_bar_of_a_row_says_of_all_what_lies_above_their_scales(top, told):
    figure = Figure(figsize=(7, 3), layout="constrained")
    axs = figure.subplots(1, 4)
    clients, globals_ = (bowl().assign_attrs(analysis=name) for name in ("round_plane", "global_plane"))
    _planes.maps(figure, axs, [clients, clients, clients, globals_], "loss", top=top)
    figure.draw_without_rendering()
    bars = _bars(figure)
    assert [re.sub(r".*%|[)]|loss|\[nats\]", "", bar.get_xlabel()).strip() for bar in bars] == told
    high = [bar.get_window_extent().height for bar in bars]
    assert high[0] == pytest.approx(high[1], rel=0.02), "a short bar is as thick as a long one"


def test_common_levels_cover_all_maps_and_are_even_in_log():
    first, second = bowl().loss, bowl().loss * 3
    levels = surfaces.common_levels(first, second, top=1.0, count=9)
    np.testing.assert_allclose([levels[0], levels[-1]], [float(first.min()), float(second.max())])
    np.testing.assert_allclose(np.diff(np.log(levels)), np.log(levels[1] / levels[0]))


def test_common_levels_are_even_where_log_is_off_or_impossible():
    for levels in (surfaces.common_levels(bowl().error, log=False), surfaces.common_levels(bowl().loss - 1)):
        np.testing.assert_allclose(np.diff(levels), levels[1] - levels[0])


def test_common_levels_of_a_constant_rise():
    assert (np.diff(surfaces.common_levels(xr.DataArray(np.full((3, 5), 2.0)))) > 0).all()
    assert (np.diff(surfaces.common_levels(xr.DataArray(np.zeros((3, 5))), log=False)) > 0).all()


def test_common_levels_of_nothing_are_refused():
    with pytest.raises(LookupError, match="finite"):
        surfaces.common_levels(xr.DataArray([np.nan]))


def test_colorbar_spans_the_levels():
    figure = Figure()
    levels = surfaces.common_levels(bowl().loss)
    surfaces.colorbar(figure, [figure.subplots()], levels, "loss [nats]")
    assert figure.axes[-1].get_ylabel() == "loss [nats]"
    np.testing.assert_allclose(figure.axes[-1].get_ylim(), [levels[0], levels[-1]])
