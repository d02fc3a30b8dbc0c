"""Matrices with named rows and columns: cosines of clients, confusions of classes; and an axis of names."""

import re
from collections.abc import Sequence
from typing import Any, cast

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.figure import Figure

from figures.axes.colour_bars import SLENDER, match_height
from figures.axes.curves import require_values
from figures.axes.fit import CELL
from figures.looks import style

LABELS = 34
"""Names on an axis; of more, every second, third and so on."""

LETTERS = 60
"""Letters side by side on a horizontal axis; names of more are upright."""

WRITTEN, MARKED = 12, 60
"""Rows up to which the numbers stand in the cells, and up to which cells below 0 have a minus."""


def matrix(
    values: xr.DataArray,
    *,
    ax: Axes | None = None,
    low: float = 0.0,
    high: float | None = None,
    bar: bool = True,
    **look: Any,
) -> Axes:
    """A matrix as coloured cells, with its numbers in them where it is small, and a colour bar.

    Args:
        values: Over rows and columns, each with names as coordinate.
        ax: Axes to draw into; the current ones of pyplot by default.
        low, high: Ends of the colours; by default 0 and the largest value.
        bar: Whether it has a colour bar of its own.
        look: Passed to `Axes.imshow`.

    Raises:
        LookupError: If the matrix has no values.
    """
    require_values(values)
    ax = style.axes(ax)
    rows, columns = map(str, values.dims)
    top = float(values.max()) if high is None else high
    look = {"cmap": style.sequential(), "vmin": low, "vmax": top if top > low else low + 1, "aspect": "equal", **look}
    image = ax.imshow(values.values, interpolation="nearest", **look)
    name_ticks(ax.xaxis, [style.literal(name) for name in values[columns].values])
    name_ticks(ax.yaxis, [style.literal(name) for name in values[rows].values])
    ax.grid(False)
    ax.set_xlabel(style.text(values[columns]))
    ax.set_ylabel(style.text(values[rows]))
    if max(values.shape) <= WRITTEN:
        _write(ax, values.values)
    if minus(ax, (values.values < 0) & bool((values > 0).any())) and max(values.shape) <= WRITTEN:
        ax.lines[-1].set(gid=CELL, visible=False)
    if bar:
        colours = cast(Figure, ax.figure).colorbar(image, ax=ax, label=style.text(values), aspect=SLENDER, pad=0.02)
        match_height(colours.ax, [ax])
    return ax


def minus(ax: Axes, cells: np.ndarray, x: float = 0.0) -> bool:
    """A minus on some cells: the colours of both signs are equally dark in grey print; on small cells none.

    Args:
        cells: Which, over rows and columns.
        x: The middle of the first cell, in both directions.

    Returns:
        Whether there is one.
    """
    rows, columns = np.nonzero(cells)
    if are_marked := max(cells.shape) <= MARKED and len(rows) > 0:
        ink = mpl.rcParams["text.color"]
        look: dict[str, Any] = {"color": ink, "markersize": 2.4, "markeredgewidth": 0.6, "linestyle": ""}
        ax.plot(columns + x, rows + x, marker="_", path_effects=style.outline(1.4), **look)
    return are_marked


def name_ticks(axis: Axis, names: Sequence[str], positions: Sequence[float] | None = None) -> None:
    """Names at their places, 0, 1, 2, .. by default; of many, every second, third and so on."""
    step = -(-len(names) // LABELS) or 1
    axis.set_ticks((range(len(names)) if positions is None else positions)[::step], names[::step])
    if isinstance(axis, XAxis) and sum(map(len, names[::step])) > LETTERS:
        axis.set_tick_params(rotation=90)


def hundredths(value: float) -> str:
    """A number with two digits after the point, without the 0 before it: .25, -.25, 10.05; a large one as 1e+300."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{round(value, 2) + 0.0:.2f}" if abs(value) < 1e4 else f"{value:.3g}")


def _write(ax: Axes, values: np.ndarray) -> None:
    """Numbers in the cells, outlined: readable on every colour; no zeros among whole ones."""
    integral = np.array_equal(values, np.round(values))
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value) and (value or not integral):
            text = f"{value:.0f}" if integral else hundredths(value)
            note = ax.text(column, row, text, ha="center", va="center", fontsize=style.small(), gid=CELL)
            note.set_path_effects(style.outline(1.2))
