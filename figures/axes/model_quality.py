"""Robustness, size and use of models: grouped bars, histograms of parameters, tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import cbook, font_manager, textpath
from matplotlib.axes import Axes

from figures.axes.curves import line_look, mean, method_look, require_values, seeds_at, split_algorithms
from figures.looks import style


def bars(
    values: xr.DataArray, *, ax: Axes | None = None, over: str, ticks: Sequence[str] | None = None, **look: Any
) -> Axes:
    """Groups of bars, one bar per method with its hatch; seeds below five as dots, from five on as a t interval.

    Args:
        values: Over `over`, and perhaps `algorithm` and `seed`.
        over: Dimension whose entries are the groups.
        ticks: Names of the groups.
        look: Passed to `Axes.bar`.

    Raises:
        LookupError: If nothing has a value.
    """
    require_values(values)
    ax = style.axes(ax)
    parts = split_algorithms(values)
    places, width = np.arange(values.sizes[over]), 0.8 / len(parts)
    for index, (name, part) in enumerate(parts):
        shift = (index - (len(parts) - 1) / 2) * width
        own = {**method_look(name), "hatch": HATCHES[index % len(HATCHES)], "edgecolor": "white", "linewidth": 0}
        ax.bar(places + shift, mean(part, "seed").values, 0.9 * width, **{**own, **look})
        whiskers(part.transpose(over, ...), places + shift, ax)
    ax.set_xticks(places, [str(value) for value in values[over].values] if ticks is None else list(ticks))
    ax.grid(False, axis="x")
    ax.set_ylabel(style.text(values))
    return ax


HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----")
"""Hatches of neighbouring bars, which differ without colour."""


def whiskers(values: xr.DataArray, places: np.ndarray, ax: Axes) -> None:
    """What varies over the seeds of bars or dots at these places, as `curves.line_with_band` chooses it.

    Args:
        values: Over a first dimension, that of the places, and perhaps seed.
    """
    for place, row in zip(places, values.values.reshape(len(places), -1), strict=True):
        seeds_at(row, float(place), ax)


def histogram(ds: xr.Dataset, *, ax: Axes | None = None, **look: Any) -> Axes:
    """How many parameters have which value, one stepped line per method, on a logarithmic axis; seeds are averaged.

    Args:
        ds: count over value, and perhaps `algorithm` and `seed`.
        look: Passed to `Axes.stairs`.
    """
    values = require_values(ds["count"])
    ax = style.axes(ax)
    centres = ds["value"].values
    width = centres[1] - centres[0]
    edges = np.append(centres - width / 2, centres[-1] + width / 2)
    for name, part in split_algorithms(values):
        ax.stairs(mean(part, "seed").values, edges, **{"linewidth": 1.1, **line_look(name), **look})
    ax.set_yscale("log")
    return style.name_axes(ax, "parameter value", f"parameters in a bin of {width:.2g}")


def table(rows: Sequence[Sequence[str]], *, ax: Axes, **look: Any) -> Axes:
    """Text in rows and columns between three rules, numbers to the right.

    Args:
        rows: Texts of each row, the heads of the columns first; the first of a row is its name.
        look: Passed to the texts.
    """
    ax.set_axis_off()
    widths = _widths(rows)
    whole = max(sum(widths), 0.97 * 72 * style.width())  # points; a table that is narrower does not spread
    right = np.cumsum(widths) / whole
    tall = [max(text.count("\n") for text in texts) + 1.0 for texts in rows]
    edges = np.cumsum([size + _BETWEEN for size in tall])  # from the top, in lines
    ax.set(xlim=(0, 1), ylim=(edges[-1] + 0.2, -0.2))
    for rule, wide in ((0.0, 0.9), (edges[0], 0.6), (edges[-1], 0.9)):
        ax.plot([0, right[-1]], [rule, rule], color="black", linewidth=wide, clip_on=False)
    look = {"va": "center", "fontsize": style.small(), "linespacing": 1.1, **look}
    for texts, low, size in zip(rows, edges, tall, strict=True):
        height = low - (size + _BETWEEN) / 2
        for index, text in enumerate(texts):
            ax.text(0.0 if index == 0 else right[index], height, text, ha="left" if index == 0 else "right", **look)
    return ax


def table_width(rows: Sequence[Sequence[str]]) -> float:
    """Inches that a table takes across."""
    return sum(_widths(rows)) / 72


_BETWEEN = 0.45
"""Space between rows, lines."""

_GAP = 7.0
"""Space between columns, points."""


def _widths(rows: Sequence[Sequence[str]]) -> list[float]:
    """Points across that each column takes."""
    columns = [[line for text in column for line in text.split("\n")] for column in zip(*rows, strict=True)]
    font = font_manager.FontProperties(size=style.small())
    widths = [max(_width(line, font) for line in column) for column in columns]
    return [width + _GAP * (index > 0) for index, width in enumerate(widths)]


def _width(line: str, font: font_manager.FontProperties) -> float:
    """Points that a line of text takes across."""
    return float(textpath.text_to_path.get_text_width_height_descent(line, font, cbook.is_math_text(line))[0])
