"""Robustness, size and use of models: grouped bars, histograms of parameters, accuracy matrices, tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.textpath import TextPath

from figures import style
from figures.axes.curves import deviation, mean, method_look, require_values, split_algorithms


def bars(
    values: xr.DataArray, *, ax: Axes | None = None, over: str, ticks: Sequence[str] | None = None, **look: Any
) -> Axes:
    """Groups of bars, one bar per method, seeds as a whisker of one standard deviation.

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
        spread = deviation(part, "seed")
        whisker = {} if spread is None else {"yerr": spread.values, "error_kw": {"lw": 0.8}}
        shift = (index - (len(parts) - 1) / 2) * width
        ax.bar(places + shift, mean(part, "seed").values, 0.9 * width, **{**method_look(name), **whisker, **look})
    ax.set_xticks(places, [str(value) for value in values[over].values] if ticks is None else list(ticks))
    ax.grid(False, axis="x")
    ax.set_ylabel(style.text(values))
    return ax


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
        ax.stairs(mean(part, "seed").values, edges, **{"linewidth": 1.1, **method_look(name), **look})
    ax.set_yscale("log")
    return style.name_axes(ax, "parameter value", f"parameters in a bin of {width:.2g}")


def matrix(values: xr.DataArray, *, ax: Axes | None = None, **look: Any) -> Axes:
    """Accuracy of every client's model (row) on every client's data (column), written into the cells where they fit.

    Args:
        values: Fractions over client and holder.
        look: Passed to `Axes.imshow`.
    """
    require_values(values)
    ax = style.axes(ax)
    ordered = values.transpose("client", "holder")
    look = {"cmap": style.SEQUENTIAL, "vmin": 0.0, "vmax": 1.0, **look}
    ax.imshow(ordered.values, **look)
    ax.grid(False)
    if ordered.size <= 144:
        for (row, column), value in np.ndenumerate(ordered.values):
            text = "" if np.isnan(value) else f"{value:.2f}".removeprefix("0")
            ax.text(column, row, text, ha="center", va="center", fontsize=6, path_effects=style.outline())
    every = max(1, ordered.sizes["client"] // 12)
    for axis, name in ((ax.xaxis, "holder"), (ax.yaxis, "client")):
        axis.set_ticks(np.arange(ordered.sizes[name])[::every], [str(value) for value in ordered[name].values[::every]])
    return style.name_axes(ax, "data of client", "model of client")


def table(rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[str]], *, ax: Axes) -> Axes:
    """Text in rows and columns between three rules, numbers to the right.

    Args:
        rows: Names of the rows.
        columns: Heads of the columns, the one above the names first.
        cells: One text for each row and column but the first.
    """
    ax.set_axis_off()
    widths = [_wide([columns[0]], rows)]
    widths += [_GAP + _wide([head], column) for head, column in zip(columns[1:], zip(*cells, strict=True), strict=True)]
    right = np.cumsum(widths) / sum(widths)
    head = len(rows) + 0.45
    ax.set(xlim=(0, 1), ylim=(-0.2, len(rows) + 1.6))
    for rule, wide in ((0.0, 0.9), (len(rows) + 0.1, 0.6), (len(rows) + 1.5, 0.9)):
        ax.plot([0, 1], [rule, rule], color="black", linewidth=wide, clip_on=False)
    for index, text in enumerate(columns):
        place = (0.0 if index == 0 else right[index], head)
        ax.text(*place, text, ha="left" if index == 0 else "right", va="baseline", fontsize=_HEAD, linespacing=1.1)
    for row, (name, texts) in enumerate(zip(rows, cells, strict=True)):
        height = len(rows) - row - 0.5
        ax.text(0, height, name, va="center", fontsize=_CELL)
        for place, text in zip(right[1:], texts, strict=True):
            ax.text(place, height, text, ha="right", va="center", fontsize=_CELL)
    return ax


_HEAD, _CELL, _GAP = 7, 7.5, 5.0
"""Sizes of text and space between columns, points."""


def _wide(heads: Sequence[str], texts: Sequence[str]) -> float:
    """Points across that the widest line takes."""
    sizes = [
        (line, size) for lines, size in ((heads, _HEAD), (texts, _CELL)) for text in lines for line in text.split("\n")
    ]
    return max(float(TextPath((0, 0), line, size=size).get_extents().width) for line, size in sizes)
