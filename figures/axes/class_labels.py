"""Who holds which labels: bubbles of clients and classes, stacked bars of class shares, colours of classes."""

from __future__ import annotations

import textwrap
from typing import Any, cast

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.axes.curves import require_values
from figures.axes.fit import CELL
from figures.axes.matrices import LABELS, name_ticks
from figures.looks import palette, style


def bubbles(ds: xr.Dataset, *, ax: Axes | None = None, largest: float = 60, **look: Any) -> Axes:
    """Who holds which labels: a bubble for every client and class, its area the number of samples.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        ds: count over client and class, samples.
        largest: Area of the largest bubble, points squared.
        look: Passed to `Axes.scatter`.
    """
    counts = require_values(ds["count"].transpose("client", "class"))
    ax = style.axes(ax)
    rows, columns = np.nonzero(counts.values > 0)
    positions, samples = ds.client.values[rows], counts.values[rows, columns]
    put_bubbles(ax, positions, columns, samples, ds["class"].values, largest=largest, most=LABELS, **look)
    ax.margins(0.04, 0.08)
    return style.name_axes(ax, "client", integers=10)


def put_bubbles(
    ax: Axes,
    positions: np.ndarray,
    columns: np.ndarray,
    samples: np.ndarray,
    names: np.ndarray,
    *,
    largest: float,
    most: int = 12,
    **look: Any,
) -> None:
    """A bubble at each place and class, its area the number of samples; of more than `most` classes some are named."""
    shades = shade(len(names))
    look = {"linewidths": 0, "c": [shades[column] for column in columns], **look}
    ax.scatter(positions, columns, s=largest * samples / samples.max(), **look)
    step = -(-len(names) // most)
    ax.set_yticks(range(0, len(names), step), [style.literal(name) for name in names[::step]])
    ax.set_ylabel("class")


def class_bars(
    ds: xr.Dataset,
    *,
    ax: Axes | None = None,
    variable: str = "cohort_share",
    over: str = "round",
    top: float = 1.0,
) -> Axes:
    """Stacked bars of class shares, one bar per round (or client), their parts named; of many bars a map.

    Where names are longer than three letters, parts and the legend have the number of the class. The map has a row per
    class: ten colours of thin bars are not told apart in grey.

    Args:
        ds: `variable` over `over` and class.
        ax: Axes to draw into; the current ones of pyplot by default.
        variable: Variable of `ds` to draw.
        over: Dimension along the horizontal axis.
        top: Share at the upper end of the colours of a map.
    """
    shares = require_values(ds[variable].transpose(over, "class"))
    ax = style.axes(ax)
    names, positions = [style.literal(name) for name in shares["class"].values], shares[over].values
    ax.grid(False)
    if len(positions) > _MOST_BARS:
        look: dict[str, Any] = {"shading": "nearest", "cmap": style.sequential(), "vmin": 0, "rasterized": True}
        mesh = ax.pcolormesh(positions, np.arange(len(names)), shares.values.T, vmax=top, **look)
        name_ticks(ax.yaxis, names)
        cast(Figure, ax.figure).colorbar(mesh, label=textwrap.fill(style.text(shares), 24), ax=ax)
        return style.name_axes(ax, over, "class", integers=6)
    bottom = np.zeros(len(positions))
    numbered = max(len(str(name)) for name in shares["class"].values) > 3
    for index, (colour, name) in enumerate(zip(shade(len(names)), names, strict=True)):
        height = shares.isel({"class": index}).fillna(0).values
        if shares.any() and not height.any():
            continue  # no bar has it
        label = f"{index} {name}" if numbered else name
        ax.bar(positions, height, 0.92, bottom=bottom, color=colour, label=label, linewidth=0)
        for position, share, low in zip(positions, height, bottom, strict=True):
            if share >= _NAMED_SHARE:
                look = {"ha": "center", "va": "center", "gid": CELL, "path_effects": style.outline()}
                ax.text(position, low + share / 2, str(index) if numbered else name, fontsize=style.small(), **look)
        bottom += height
    ax.set_ylim(0, 1)
    ax.margins(x=0.01)
    return style.name_axes(ax, over, style.text(shares), integers=6)


_MOST_BARS, _NAMED_SHARE = 12, 0.1
"""Most bars, and the share from which on a part of one is named."""


def shade(count: int) -> list[Any]:
    """`count` colours for classes: ten that differ well for colour-blind readers too, else steps of a colour map."""
    return list(palette.CLASSES[:count]) if count <= len(palette.CLASSES) else style.steps(count)
