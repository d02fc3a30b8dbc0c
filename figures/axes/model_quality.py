"""Robustness and size of models: grouped bars, histograms of parameters."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from figures.axes.curves import mean, require_values, seeds_at, split_algorithms
from figures.axes.method_looks import method_look
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
    pairs = split_algorithms(values)
    positions, width = np.arange(values.sizes[over]), 0.8 / len(pairs)
    for index, (name, series) in enumerate(pairs):
        shift = (index - (len(pairs) - 1) / 2) * width
        artist = {**method_look(name), "hatch": HATCHES[index % len(HATCHES)], "edgecolor": "white", "linewidth": 0}
        ax.bar(positions + shift, mean(series, "seed").values, 0.9 * width, **{**artist, **look})
        whiskers(series.transpose(over, ...), positions + shift, ax)
    ax.set_xticks(positions, [str(value) for value in values[over].values] if ticks is None else list(ticks))
    ax.grid(False, axis="x")
    ax.set_ylabel(style.text(values))
    return ax


HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----")
"""Hatches of neighbouring bars, which differ without colour."""


def whiskers(values: xr.DataArray, positions: np.ndarray, ax: Axes) -> None:
    """What varies over the seeds of bars or dots at these places, as `curves.line_with_band` chooses it.

    Args:
        values: Over a first dimension, that of the places, and perhaps seed.
    """
    for position, row in zip(positions, values.values.reshape(len(positions), -1), strict=True):
        seeds_at(row, float(position), ax)


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
    for name, series in split_algorithms(values):
        dashes = {} if name is None else {"linestyle": style.dash(name)}
        ax.stairs(mean(series, "seed").values, edges, **{"linewidth": 1.1, **method_look(name), **dashes, **look})
    ax.set_yscale("log")
    return style.name_axes(ax, "parameter value", f"parameters in a bin of {width:.2g}")
