"""Surfaces: contour maps of planes, profiles of lines, and the models marked on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from figures.axes.colour_bars import colorbar, common_levels, norm, remember
from figures.axes.curves import is_logarithmic, line_with_band, require_values, split_algorithms
from figures.axes.fit import NAME
from figures.axes.method_looks import line_look
from figures.axes.relief import direction
from figures.looks import style
from figures.selection.sampling_error import SURE
from landscape.surfaces.minimum import fitted_minimum, label_minimum
from landscape.surfaces.sampling_error import SUFFIX

__all__ = ["colorbar", "common_levels", "contour", "direction", "ends", "norm", "profile"]


def contour(
    ds: xr.Dataset,
    *,
    ax: Axes | None = None,
    variable: str = "loss",
    levels: np.ndarray | None = None,
    marks: bool = True,
    names: bool = True,
    bar: bool | None = None,
    **look: Any,
) -> Axes:
    """Contour map of a plane, with its models (triangles), their mean (white cross) and its minimum (circle).

        ds = run.cached(drift.round_plane, points=11)
        figures.contour(ds, variable="error")

    The minimum is that of the variable, fitted below the grid (`landscape.surfaces.minimum`), with bars of one standard
    error; a note replaces it where it is at the edge of the map or cannot be located.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        variable: Variable of `ds` to draw.
        ds: The variable over two dimensions, perhaps with its sampling error: what may be as low as the lowest point is
            then hatched; marks as `landscape.surface` returns them, and perhaps the minimum as
            `landscape.surfaces.minimum.label_minimum` does: `drift.analyses.landscapes.basin` adds the error of the
            samples to that of the fit.
        levels: Shared by maps that are compared; `figures.common_levels` makes them.
        marks, names: Models are marked, and named.
        bar: Whether to add a colour bar; by default only where no levels are given.
        look: Passed to `Axes.contourf`.

    Raises:
        LookupError: If the surface has no values.
        ValueError: If the variable does not have two dimensions.
    """
    values = ds[variable]
    if values.ndim != 2:
        raise ValueError(f"{variable} has dimensions {', '.join(map(str, values.dims))}; a map needs two.")
    require_values(values)
    ax = style.axes(ax)
    first, second = map(str, values.dims)
    used = levels if levels is not None else common_levels(values, log=variable == "loss")
    grid = ds[first].values, ds[second].values, values.transpose(second, first).values
    look = {"levels": used, "norm": norm(used), "cmap": style.sequential(), "extend": "both", **look}
    filled = ax.contourf(*grid, **look)
    filled.set_edgecolor("face")
    ax.contour(*grid, levels=used, colors="white", linewidths=0.3, alpha=0.6)
    ax.grid(False)
    remember(ax, values.values)
    if f"{variable}{SUFFIX}" in ds:
        _hatch_lowest(ds, variable, (first, second), ax)
    style.name_axes(ax, direction(ds, first), direction(ds, second))
    if ds.attrs.get("isometric", 0) == 1:
        ax.set_aspect("equal")
    if marks:
        _models(ds, first, second, ax, names, _minimum(ds, variable, first, second, ax))
    if bar if bar is not None else levels is None:
        colorbar(cast(Figure, ax.figure), [ax], used, style.text(values), cmap=look["cmap"])
    return ax


def _hatch_lowest(ds: xr.Dataset, variable: str, dims: tuple[str, str], ax: Axes) -> None:
    """Hatch the points whose difference from the lowest one is within its sampling error."""
    first, second = dims
    above = (ds[variable] - ds[variable].min()).transpose(second, first).values
    error = ds[f"{variable}{SUFFIX}"].transpose(second, first).values
    sure = np.where(error > 0, above / np.where(error > 0, error, 1), np.where(above > 0, np.inf, 0))
    grid = ds[first].values, ds[second].values, np.minimum(sure, 1e3)
    hatched = ax.contourf(*grid, levels=[-1, SURE], colors="none", hatches=["....."])
    hatched.set(edgecolor="white", linewidth=0)
    ax.contour(*grid, levels=[SURE], colors="white", linewidths=0.8, linestyles="--")


def profile(
    ds: xr.Dataset, *, ax: Axes | None = None, variable: str = "loss", log: bool | None = None, **look: Any
) -> Axes:
    """A line or slice through parameter space: the variable over t, one line per method, dots at the minima.

    A minimum is fitted below the grid; one that is not inside has no dot.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        variable: Variable of `ds` to draw.
        ds: The variable over t, and perhaps `algorithm` and `seed`.
        log: Logarithmic vertical axis; by default for a positive loss.
        look: Passed to `Axes.plot`.

    Raises:
        LookupError: If the line has no values.
    """
    values = require_values(ds[variable])
    ax = style.axes(ax)
    usual = log if log is not None else variable == "loss" and bool((values.fillna(1) > 0).all())
    log = is_logarithmic(values, usual)
    dots: list[Line2D] = []
    for name, series in split_algorithms(values):
        drawn_before = len(ax.lines)
        line_with_band(series, ax=ax, over="t", log=log, **line_look(name, **look))
        middle = series.mean("seed") if "seed" in series.dims else series
        lowest = fitted_minimum(xr.Dataset({variable: middle}), variable)
        if lowest.state == "inside":
            colour = ax.lines[drawn_before].get_color()
            ring: dict[str, Any] = {"markersize": 3.5, "markeredgecolor": "white", "zorder": 4}
            dots += ax.plot(lowest.at["t"], lowest.value, "o", color=colour, **ring)
    for dot in dots[-1:]:
        dot.set_label("minimum")  # one entry in a legend, after the methods
    if f"{variable}{SUFFIX}" in ds and values.ndim == 1:
        reach = SURE * ds[f"{variable}{SUFFIX}"]
        ax.fill_between(ds["t"], values - reach, values + reach, color=style.GLOBAL, alpha=0.15, linewidth=0)
    if log:
        style.logarithmic(ax)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    return style.name_axes(ax, style.text(ds["t"]), style.text(values))


def path(ds: xr.Dataset, dims: Sequence[str], ax: Axes, *, named: bool = True, **look: Any) -> None:
    """The marks joined in their order, as those of a trajectory; both ends named, or the first hollow."""
    x, y = (ds[f"mark_{name}"].values for name in dims)
    look = {"color": style.GLOBAL, "linewidth": 1, "markersize": 3, "markeredgecolor": "white", **look}
    ax.plot(x, y, "o-", markeredgewidth=0.4, **look)
    if not named:
        ax.plot(x[:1], y[:1], "o", color="white", markersize=6, markeredgecolor=style.GLOBAL)
    for index in (0, -1) if named else ():
        note = ax.annotate(str(ds["mark"].values[index]), (x[index], y[index]), (0, 5), textcoords="offset points")
        note.set(ha="center", va="bottom", fontsize=style.small(), path_effects=style.outline(), gid=NAME)


def ends(ax: Axes, first: str, second: str) -> None:
    """Name the two models of a line, at t = 0 and t = 1, above the axes."""
    for at, name in ((0, first), (1, second)):
        ax.axvline(at, color=style.GLOBAL, linewidth=0.6, linestyle=":", zorder=1)
        note = ax.annotate(name, (at, 1), (0, 2), ("data", "axes fraction"), "offset points")
        note.set(ha="center", fontsize=style.small())


def _minimum(ds: xr.Dataset, variable: str, first: str, second: str, ax: Axes) -> tuple[float, float]:
    """A ring with bars of one standard error at the minimum, or a note that there is none inside; its place, or NaN.

    Of what the map shows; fitted here where the dataset has none of it.
    """
    if "minimum_state" not in ds or ds["minimum_state"].attrs.get("metric", "loss") != variable:
        ds = ds.assign(label_minimum(fitted_minimum(ds, variable), ds, variable).data_vars)
    state = str(ds["minimum_state"].values)
    if state != "inside":
        look: dict[str, Any] = {"xycoords": ax.xaxis.label, "textcoords": "offset points"}  # clear of flat maps
        ax.annotate(_NOTES[state], (0.5, 0), (0, -1), **look, fontsize=style.small(), ha="center", va="top")
        return np.nan, np.nan
    x, y, wide, high = (float(ds[f"minimum_{name}"]) for name in (first, second, f"{first}_error", f"{second}_error"))
    bars: dict[str, Any] = {"ecolor": "white", "elinewidth": 0.7, "markersize": 8.0, "zorder": 4, "clip_on": True}
    ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": "white", "markeredgewidth": 0.9}
    across, up = (_within(ds[name], at, error) for name, at, error in ((first, x, wide), (second, y, high)))
    ax.errorbar(x, y, xerr=across, yerr=up, fmt="o", **bars, **ring)
    return x, y


def _within(axis: xr.DataArray, at: float, error: float) -> list[list[float]]:
    """Lengths of a bar to both sides, which end where the map does: a longer one would make the panel larger.

    A place beyond the map has no bar away from it.
    """
    room = (at - float(axis.min()), float(axis.max()) - at)
    return [[max(0.0, min(error, length))] for length in room]


_NOTES = {"edge": "minimum at or\nbeyond the edge", "none": "no minimum\nlocated"}


def _models(ds: xr.Dataset, first: str, second: str, ax: Axes, names: bool, ring: tuple[float, float]) -> None:
    if "mark" not in ds.dims:
        return
    for index, mark in enumerate(map(style.literal, ds["mark"].values)):
        x, y = float(ds[f"mark_{first}"][index]), float(ds[f"mark_{second}"][index])
        if mark == "mean":
            ax.plot(x, y, "X", color="white", markeredgecolor="black", markeredgewidth=0.5, markersize=6, zorder=5)
            continue
        ax.plot(x, y, "^", color="black", markeredgecolor="white", markeredgewidth=0.6, markersize=5.5, zorder=5)
        if names:
            low = y <= float(ds[f"mark_{second}"].mean())  # the name stands on the outer side of the triangle,
            across, up = (ring[0] - x) / np.ptp(ds[first].values), (ring[1] - y) / np.ptp(ds[second].values)
            low ^= abs(across) < 0.1 and 0 < (-up if low else up) < 0.25  # or clear of the ring
            note = ax.annotate(
                mark, (x, y), (0, -5 if low else 4.5), textcoords="offset points", fontsize=style.small(), zorder=6
            )
            note.set(ha="center", va="top" if low else "bottom", path_effects=style.outline(), gid=NAME)
