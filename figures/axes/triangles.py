"""Triangles: maps over the weights of three clients, and where on them the best weights lie."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from figures.axes import surfaces
from figures.axes.colour_bars import remember
from figures.axes.curves import require_values
from figures.looks import style
from landscape.geometry.simplex import on_triangle
from landscape.surfaces.minimum import fitted_minimum

_EDGED = [withStroke(linewidth=1.6, foreground="black")]
"""White lines are seen on pale maps and in a legend."""


def triangle(
    ds: xr.Dataset, *, ax: Axes | None = None, variable: str = "loss", levels: np.ndarray | None = None, **look: Any
) -> Axes:
    """Contour map over the weights of three clients, one at each corner of an equilateral triangle.

    A diamond marks the weights by size, a cross equal weights, a ring the fitted minimum, or a square the lowest grid
    point where this lies at the edge; corners are named with their values. Where weights below 0 are shown, the edges
    of the triangle are drawn.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        variable: Variable of `ds` to draw.
        ds: The variable over alpha and beta, the first two weights; marks as `drift.weight_simplex` returns them.
        levels: Shared by maps that are compared; `figures.common_levels` makes them.
        look: Passed to `Axes.contourf`.

    Raises:
        LookupError: If there are no values.
    """
    require_values(ds[variable])
    ax = style.axes(ax)
    used = levels if levels is not None else surfaces.common_levels(ds[variable], log=variable == "loss", top=1.0)
    alpha, beta = np.meshgrid(ds.alpha.values, ds.beta.values, indexing="ij")
    values = np.ma.masked_invalid(ds[variable].transpose("alpha", "beta").values)
    x, y = on_triangle(alpha, beta)
    look = {"levels": used, "norm": surfaces.norm(used), "cmap": style.sequential(), "extend": "both", **look}
    ax.contourf(x, y, values, **look).set_edgecolor("face")
    remember(ax, np.ma.filled(values, np.nan))
    ax.contour(x, y, values, levels=used, colors="white", linewidths=0.3, alpha=0.6)
    if float(ds.alpha.min()) < 0:
        edges = on_triangle(np.array([1, 0, 0, 1]), np.array([0, 1, 0, 0]))
        ax.plot(
            *edges, color="white", linewidth=0.9, zorder=3, path_effects=_EDGED, label="inside: weights of 0 or more"
        )
    white: dict[str, Any] = {"color": "white", "markeredgecolor": "black", "markeredgewidth": 0.6, "linestyle": ""}
    lowest = fitted_minimum(ds.transpose("alpha", "beta", ...), variable)
    inside = lowest.state == "inside"
    low = np.unravel_index(int(values.argmin()), values.shape)
    best = on_triangle(lowest.at["alpha"], lowest.at["beta"]) if inside else (x[low], y[low])
    ring: dict[str, Any] = {"color": "none", "markeredgecolor": "white", "linestyle": "", "zorder": 5, "clip_on": False}
    ring["path_effects"] = [withStroke(linewidth=2.2, foreground="black")]  # seen on pale maps and in a legend
    marker, label = ("o", "minimum") if inside else ("s", "lowest grid point, at the edge")
    ax.plot(*best, **ring, marker=marker, markersize=5, markeredgewidth=1.0, label=label)
    names = [str(mark) for mark in ds.mark.values]
    for name, marker, label in (("by size", "D", "weights by size"), ("mean", "X", "equal weights")):
        at = ds.isel(mark=names.index(name))
        ax.plot(*on_triangle(at.mark_alpha, at.mark_beta), **white, marker=marker, markersize=5, zorder=5, label=label)
    _corners(ds, variable, ax)
    shown = ~np.ma.getmaskarray(values)
    ax.set(xlim=(x[shown].min(), x[shown].max()), ylim=(y[shown].min(), y[shown].max()), aspect="equal")
    ax.set_axis_off()
    return ax


def optima(ds: xr.Dataset, *, ax: Axes | None = None, **look: Any) -> Axes:
    """Path of the best weights over rounds, coloured from the first (dark) to the last, with one standard deviation.

    The colours are those of `by_round`.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        ds: best_weight (round, client), mean (client,) and perhaps covariance (client, client_other), as
            `drift.best_weights` gives them.
        look: Passed to `Axes.scatter`.
    """
    ax = style.axes(ax)
    best = ds["best_weight"].transpose("client", "round")
    known = np.isfinite(best.values).all(0)
    x, y = on_triangle(best.values[0, known], best.values[1, known])
    path: dict[str, Any] = {"color": "white", "linewidth": 0.6, "zorder": 6, "path_effects": _EDGED}
    ax.plot(x, y, **path, marker=".", label="best weights, over rounds")
    look = {"s": 18, "edgecolors": "white", "linewidths": 0.5, "zorder": 7, "clip_on": False, **look}
    ax.scatter(x, y, color=by_round(ds["round"], known), **look)
    if "covariance" in ds and bool(np.isfinite(ds["covariance"].values).all()):
        _spread(ds, ax)
    return style.name_axes(ax)


def by_round(rounds: xr.DataArray, shown: np.ndarray) -> np.ndarray:
    """Colours (n, 4) of the rounds that are shown, from the dark of the first of all to the light of the last.

    They are seen on a map in viridis.
    """
    return mpl.colormaps["inferno"](np.linspace(0.1, 0.95, max(rounds.size, 1)))[: rounds.size][shown]


def _corners(ds: xr.Dataset, variable: str, ax: Axes) -> None:
    low = min(float(ds.alpha.min()), 0.0)  # names stand at the corners of the map, which shows weights from here on
    for index, (down, side) in enumerate(((-4, "top"), (-4, "top"), (4, "bottom"))):
        at = on_triangle(*(low + (1 - 3 * low) * float(ds[name][index]) for name in ("mark_alpha", "mark_beta")))
        name = style.literal(ds.mark.values[index])
        name = name.removeprefix("client ") if style.is_narrow() else name
        value = f"{variable} {float(ds[f'mark_{variable}'][index]):.2g}"
        text = f"{name}{chr(10) if index < 2 else ', '}{value}"
        note = ax.annotate(text, at, (0, down), textcoords="offset points", size=style.small(), ha="center", va=side)
        note.set(path_effects=style.outline(), zorder=8)


def _spread(ds: xr.Dataset, ax: Axes) -> None:
    """The ellipse of one standard deviation around the mean of the best weights."""
    corners = np.array([on_triangle(*pair) for pair in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.0))])
    middle = ds["mean"].values @ corners
    sizes, axes = np.linalg.eigh(corners.T @ ds["covariance"].values @ corners)
    turn = np.linspace(0, 2 * np.pi, 73)
    x, y = middle[:, None] + axes @ (np.sqrt(np.maximum(sizes, 0))[:, None] * np.stack([np.cos(turn), np.sin(turn)]))
    ax.plot(x, y, "--", color="black", linewidth=0.9, zorder=6, label="best weights, one std around the mean")
