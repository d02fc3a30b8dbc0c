"""Ticks whose numbers would touch are thinned; others stay."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import LogLocator

from figures.axes.fit import NAME, fit, lay_out
from figures.axes.matrices import matrix
from figures.looks.words import even_lines

pytestmark = pytest.mark.seconds


def _panel(width, *, tall=False, scale="linear"):
    """A panel with nine numbers on one axis."""
    figure = Figure(figsize=(3, width) if tall else (width, 3), layout="constrained")
    ax = figure.add_subplot()
    ax.plot([1, 9], [1, 9])
    axis = ax.yaxis if tall else ax.xaxis
    (ax.set_yscale if tall else ax.set_xscale)(scale)
    axis.set_ticks(np.arange(1, 10), [f"{place * 1000}" for place in range(1, 10)])
    lay_out(figure)
    return figure, ax, axis


def _gaps(axis, way):
    boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
    ends = sorted((box.intervaly if way else box.intervalx).tolist() for box in boxes)
    return [second[0] - first[1] for first, second in pairwise(ends)]


@pytest.mark.parametrize("tall", [False, True])
def test_numbers_that_touch_are_thinned_to_every_second_one_until_they_do_not(tall):
    figure, ax, axis = _panel(1.0 if tall else 1.8, tall=tall)
    assert min(_gaps(axis, tall)) < 1, "the numbers do not touch, so that nothing is tried"
    fit(figure, [ax])
    lay_out(figure)
    places, texts = list(axis.get_majorticklocs()), [label.get_text() for label in axis.get_ticklabels()]
    assert places in ([1, 3, 5, 7, 9], [1, 5, 9])
    assert texts == [f"{place * 1000:.0f}" for place in places]
    assert min(_gaps(axis, tall)) >= 1


def test_numbers_with_room_stay():
    figure, ax, axis = _panel(8.0)
    fit(figure, [ax])
    assert list(axis.get_majorticklocs()) == list(range(1, 10))


def test_words_and_logarithmic_numbers_stay():
    figure, ax, axis = _panel(1.8, scale="log")
    fit(figure, [ax])
    assert len(axis.get_majorticklocs()) == 9
    figure, ax, axis = _panel(1.8)
    axis.set_ticks(np.arange(1, 10), ["aaaaaa"] * 9)
    fit(figure, [ax])
    assert len(axis.get_majorticklocs()) == 9


def test_powers_of_ten_that_touch_are_thinned():
    figure = Figure(figsize=(3, 0.6), layout="constrained")
    ax = figure.add_subplot(yscale="log", ylim=(1e-8, 1e-5))
    ax.yaxis.set_major_locator(LogLocator(subs=(1,), numticks=9))
    fit(figure, [ax])
    assert ax.get_yticks().tolist() == pytest.approx([1e-8, 1e-6])


@pytest.mark.parametrize("low", [-1.5, 0.1])
def test_a_small_matrix_names_every_second_row_and_the_last_and_keeps_the_signs_of_its_numbers(low):
    figure = Figure(figsize=(1.5, 1.5), layout="constrained")
    names = [*map(str, range(10, 18)), "global"]
    values = xr.DataArray(np.linspace(low, 1.5, 81).reshape(9, 9), {"a": names, "b": names}, ("a", "b"))
    ax = matrix(values, ax=figure.add_subplot(), low=-2, high=2, bar=False)
    fit(figure, [ax])
    lay_out(figure)
    assert [text.get_text() for text in ax.get_yticklabels()][-1] == "global" and min(_gaps(ax.yaxis, True)) >= 1
    shown = [line for line in ax.lines if line.get_visible()]
    assert not ax.texts and sum(len(line.get_xdata()) for line in shown) == (values < 0).sum()


def test_the_label_of_a_bar_at_the_side_of_a_figure_stays_inside():
    figure = Figure(figsize=(3, 1.5))
    ax = figure.add_axes((0.01, 0.6, 0.7, 0.1), label="<colorbar>")
    ax.set_xlabel("a label as long as its bar, with more words")
    for size in range(20, 2, -1):
        ax.xaxis.label.set_fontsize(size)
        if ax.xaxis.label.get_window_extent().width < 1.04 * ax.get_window_extent().width:
            break
    fit(figure, [ax])
    assert ax.xaxis.label.get_window_extent().x0 >= 0


def test_a_title_stays_clear_of_a_colour_bar_that_goes_on_above_it():
    figure = Figure(figsize=(3, 3))
    ax = figure.add_subplot(figure.add_gridspec(1, 1, left=0.2, right=0.6, bottom=0.1, top=0.4)[0])
    bar = figure.add_axes((0.65, 0.1, 0.05, 0.8), label="<colorbar>")
    ax.set_title("of words that need room", fontsize=9)
    assert ax.title.get_window_extent().x1 > bar.get_window_extent().x0
    fit(figure, [ax, bar])
    assert ax.title.get_window_extent().x1 <= bar.get_window_extent().x0


def test_lines_of_a_wrapped_text_are_nearly_as_long_as_one_another():
    assert even_lines("distance along v", 14) == ["distance", "along v"]
    assert even_lines("one two three four", 15) == ["one two", "three four"]
    assert even_lines("short", 3) == ["short"]
    assert even_lines("client 12", 3) == ["client", "12"], "a word per line cannot be shorter"
    assert even_lines("a formula $a b c$ of three", 12) == ["a formula", "$a b c$ of", "three"]


@pytest.mark.parametrize(("others", "where"), [([], (0, 1)), ([(5, 5.6)], (0, -1)), ([(5, 5.6), (5, 4.4)], (1, 0))])
def test_a_name_stands_where_it_covers_no_mark(others, where):
    figure = Figure(figsize=(3, 3), layout="constrained")
    ax = figure.add_subplot(xlim=(0, 10), ylim=(0, 10))
    ax.plot(5, 5, "o")
    note = ax.annotate("here", (5, 5), (0, 5), textcoords="offset points", ha="center", va="bottom", gid=NAME)
    ax.scatter(*np.reshape(others, (-1, 2)).T)
    fit(figure, [ax])
    assert tuple(np.sign(note.xyann)) == where


def test_a_name_lies_over_no_line_between_marks_and_inside_of_its_map():
    figure = Figure(figsize=(3, 3), layout="constrained")
    ax = figure.add_subplot(xlim=(0, 10), ylim=(0, 10))
    ax.plot([0.1, 0.1], [5, 9.9], "o-")
    note = ax.annotate("here", (0.1, 5), (0, 5), textcoords="offset points", ha="center", va="bottom", gid=NAME)
    fit(figure, [ax])
    assert note.xyann == (5, 0), "to the right: a line runs up, and the map ends at the left"


def test_names_beside_models_that_are_close_cover_no_other_name_and_no_mark_with_their_letters():
    figure = Figure(figsize=(3, 3), layout="constrained")
    ax = figure.add_subplot(xlim=(0, 10), ylim=(0, 10))
    ax.scatter([5, 3.4], [5, 4.2])
    line = {"arrowstyle": "-"}
    look = {"textcoords": "offset points", "ha": "right", "va": "center", "gid": NAME}
    first = ax.annotate("other", (5, 5), (-26, 20), arrowprops=line, **look)
    second = ax.annotate("start", (5, 5), (-26, -20), arrowprops=line, **look)
    fit(figure, [ax])
    assert first.xyann == (-26, 20)
    assert not Text.get_window_extent(second).padded(2).contains(*ax.transData.transform((3.4, 4.2)))


def test_a_level_label_is_as_wide_as_its_panel_and_not_as_it_is_tall():
    figure = Figure(figsize=(3, 1), layout="constrained")
    ax = figure.add_subplot(ylabel="a label of several words")
    ax.yaxis.label.set(rotation=0, ha="left")
    fit(figure, [ax])
    assert "\n" not in ax.get_ylabel()
