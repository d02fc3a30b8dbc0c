"""Surfaces: contour maps of planes, profiles of lines, and the models marked on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from figures import style
from figures.curves import algorithms, banded, require


def contour(
    ds: xr.Dataset,
    *,
    ax: Axes | None = None,
    variable: str = "loss",
    levels: np.ndarray | None = None,
    marks: bool = True,
    names: bool = True,
    **look: Any,
) -> Axes:
    """Contour map of a plane, with its models (triangles), their mean (white cross) and the grid minimum (circle).

    Args:
        ds: The variable over two dimensions; marks as `landscape.surface` gives them.
        levels: Shared by maps that are compared; `figures.common_levels` makes them.
        marks, names: Models are marked, and named.
        look: As `Axes.contourf` takes it.

    Raises:
        LookupError: If the surface has no values.
        ValueError: If the variable does not have two dimensions.
    """
    values = ds[variable]
    if values.ndim != 2:
        raise ValueError(f"{variable} has dimensions {', '.join(map(str, values.dims))}; a map needs two.")
    require(values)
    ax = style.axes(ax)
    first, second = map(str, values.dims)
    chosen = levels if levels is not None else common_levels(values, log=variable == "loss")
    grid = ds[first].values, ds[second].values, values.transpose(second, first).values
    look = {"levels": chosen, "norm": norm(chosen), "cmap": style.SEQUENTIAL, "extend": "both", **look}
    filled = ax.contourf(*grid, **look)
    filled.set_edgecolor("face")
    ax.contour(*grid, levels=chosen, colors="white", linewidths=0.3, alpha=0.6)
    ax.grid(False)
    ax.set_xlabel(style.text(ds[first]))
    ax.set_ylabel(style.text(ds[second]))
    if ds.attrs.get("isometric", 0) == 1:
        ax.set_aspect("equal")
    if marks:
        _lowest(ds, values, ax)
        _models(ds, first, second, ax, names)
    return ax


def common_levels(*values: xr.DataArray, count: int = 14, log: bool = True, top: float = 0.9) -> np.ndarray:
    """Contour levels common to several maps, evenly spaced in log (or not, for fractions such as the error).

    Args:
        count: How many.
        top: Quantile of the values at the highest level; the few beyond it share one colour.

    Raises:
        LookupError: If no value is finite.
    """
    flat = np.concatenate([np.ravel(part) for part in values])
    flat = flat[np.isfinite(flat)]
    if not len(flat):
        raise LookupError("none of the surfaces has a finite value; compute them first.")
    low, high = float(flat.min()), float(np.quantile(flat, top))
    if log and low > 0:
        return np.geomspace(low, max(high, low * 1.01), count)
    return np.linspace(low, max(high, low + 1e-3), count)


def norm(levels: np.ndarray) -> Normalize:
    """Colour scale of contour levels: logarithmic where their spacing is."""
    even = np.allclose(np.diff(levels), levels[1] - levels[0])
    return Normalize(levels[0], levels[-1]) if even else LogNorm(levels[0], levels[-1])


def profile(
    ds: xr.Dataset, *, ax: Axes | None = None, variable: str = "loss", log: bool | None = None, **look: Any
) -> Axes:
    """A line or slice through parameter space: the variable over t, one line a method, dots at the minima.

    Args:
        ds: The variable over t, and perhaps `algorithm` and `seed`.
        log: Logarithmic vertical axis; for a positive loss where not given.
        look: As `Axes.plot` takes it.

    Raises:
        LookupError: If the line has no values.
    """
    values = ds[variable]
    require(values)
    ax = style.axes(ax)
    for name, part in algorithms(values):
        known = {} if name is None else {"color": style.colour(name), "label": style.label(name)}
        drawn = {**known, **look}
        banded(part, ax=ax, over="t", **drawn)
        middle = part.mean("seed") if "seed" in part.dims else part
        lowest = middle.isel(t=int(middle.argmin("t")))
        colour = ax.lines[-1].get_color()
        ax.plot(float(lowest.t), float(lowest), "o", color=colour, markersize=3.5, markeredgecolor="white", zorder=4)
    if log if log is not None else variable == "loss" and bool((values.fillna(1) > 0).all()):
        style.logarithmic(ax)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.set_xlabel(style.text(ds["t"]))
    ax.set_ylabel(style.text(values))
    return ax


def ends(ax: Axes, first: str, second: str) -> None:
    """Name the two models of a line, at t = 0 and t = 1, above the axes."""
    for place, name in ((0, first), (1, second)):
        ax.axvline(place, color=style.GLOBAL, linewidth=0.6, linestyle=":", zorder=1)
        ax.annotate(
            name,
            (place, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=6.5,
        )


def colorbar(
    figure: Figure, axs: Iterable[Axes], levels: np.ndarray, label: str, *, cmap: str | Colormap = style.SEQUENTIAL
) -> None:
    """One colour bar of common levels for several maps, with a few round ticks."""
    with style.context():
        drawn = ScalarMappable(norm(levels), cmap)
        bar = figure.colorbar(drawn, ax=list(axs), label=label, pad=0.01, aspect=25, extend="max")
        ticks = levels[:: max(1, len(levels) // 5)].tolist()
        bar.set_ticks(ticks, labels=[f"{value:.2g}" for value in ticks])
        bar.minorticks_off()


def _lowest(ds: xr.Dataset, values: xr.DataArray, ax: Axes) -> None:
    place = values.isel({dim: int(index) for dim, index in values.argmin(...).items()})
    x, y = (float(place[dim]) for dim in values.dims)
    ax.plot(
        x, y, "o", color="none", markeredgecolor="white", markersize=4.5, markeredgewidth=0.9, zorder=4, clip_on=False
    )


def _models(ds: xr.Dataset, first: str, second: str, ax: Axes, names: bool) -> None:
    if "mark" not in ds.dims:
        return
    for index, mark in enumerate(map(str, ds["mark"].values)):
        x, y = float(ds[f"mark_{first}"][index]), float(ds[f"mark_{second}"][index])
        if mark == "mean":
            ax.plot(x, y, "X", color="white", markeredgecolor="black", markeredgewidth=0.5, markersize=6, zorder=5)
            continue
        ax.plot(x, y, "^", color="black", markeredgecolor="white", markeredgewidth=0.6, markersize=5.5, zorder=5)
        if names:
            low = y <= float(ds[f"mark_{second}"].mean())  # the name stands on the outer side of the triangle
            note = ax.annotate(mark, (x, y), (0, -5 if low else 4.5), textcoords="offset points", fontsize=6, zorder=6)
            note.set(ha="center", va="top" if low else "bottom", path_effects=style.outline())
