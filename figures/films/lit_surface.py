"""A plane as a surface in three dimensions: soft light, draped level lines, the map below it, and paths to the mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.colors import LightSource
from matplotlib.ticker import MaxNLocator
from mpl_toolkits.mplot3d import Axes3D
from scipy.interpolate import PchipInterpolator
from scipy.ndimage import map_coordinates

from figures.axes.surfaces import common_levels, direction
from figures.looks import style

LIGHT = (315.0, 50.0)
"""Azimuth and height of the light as `LightSource` takes them: it stands at the low ends of both axes."""

GROUNDS = {"light": ("white", "#222222"), "dark": ("#0e1116", "#f2f2f2")}
"""Background, and what is written and drawn on it, by name."""

FINE = 200
"""Cells along each axis of the drawn surface."""

MEANS = ("mean", "by size")
"""Marks that are means of the others."""


def lit_surface(
    ds: xr.Dataset,
    *,
    ax: Axes,
    variable: str = "loss",
    azimuth: float = -60.0,
    levels: np.ndarray | None = None,
    ground: str = "light",
    fine: int = FINE,
) -> Axes:
    """A plane as a lit surface whose height and colour are the variable, with level lines on it and its map below.

    Between the points of the grid the picture is interpolated without new minima (`scipy.interpolate.PchipInterpolator`
    along both axes); values that are not finite leave a hole, and so do those above the levels. Lines lead from each
    model along the surface to their mean, or along a path (attribute `trail`). Distances are those of the two axes.

    Args:
        ds: The variable over two dimensions, as `landscape.surface` returns it.
        ax: Axes of projection "3d".
        variable: Variable of `ds`; a positive loss is shown as its logarithm.
        azimuth: Direction of the camera, degrees.
        levels: Of the lines; their ends are those of height and colour. `figures.common_levels` makes them for several
            frames.
        ground: "light" or "dark".
        fine: Cells along each axis of the drawn surface.

    Raises:
        ValueError: If the variable has no two dimensions, the axes are flat, or the ground is none of these.
    """
    values = ds[variable]
    if values.ndim != 2:
        raise ValueError(f"{variable} has dimensions {', '.join(map(str, values.dims))}; a surface needs two.")
    if not isinstance(ax, Axes3D):
        raise ValueError("a surface needs axes in three dimensions: figure.add_subplot(projection='3d').")
    if ground not in GROUNDS:
        raise ValueError(f"ground is {ground!r}; accepted: {', '.join(GROUNDS)}.")
    first, second = map(str, values.dims)
    used = common_levels(values, log=variable == "loss") if levels is None else levels
    log = variable == "loss" and used[0] > 0

    def height(numbers: np.ndarray) -> np.ndarray:
        return np.log10(np.where(numbers > 0, numbers, np.nan)) if log else np.asarray(numbers, dtype=float)

    ends = (ds[name].values.astype(float)[[0, -1]] for name in (first, second))
    x, y = (np.linspace(start, stop, fine + 1) for start, stop in ends)
    z = interpolated(ds[first].values, ds[second].values, height(values.values), x, y)
    low, high = height(used[[0, -1]])
    z = np.where(z > high, np.nan, np.maximum(z, low))
    span, sizes = high - low, (np.ptp(x), np.ptp(y))
    drop = low - 0.55 * span
    paper, ink = GROUNDS[ground]
    _map(ax, x, y, z, height(used), drop, ground)
    colours = _colours(z, x, y, height(used), 0.5 * float(np.sqrt(sizes[0] * sizes[1])) / span)
    plain: dict[str, Any] = {"linewidth": 0, "antialiased": False, "shade": False}
    every = {"rcount": fine + 1, "ccount": fine + 1}
    hidden = ~np.isfinite(z)
    hidden[:-1] |= hidden[1:]
    hidden[:, :-1] |= hidden[:, 1:]  # a cell has the colour of its first corner
    colours[hidden, 3] = 0
    whole = np.where(np.isfinite(z), z, high)  # mplot3d reads memory that nobody wrote where a cell lacks a corner
    ax.plot_surface(*np.meshgrid(x, y, indexing="ij"), whole, facecolors=colours, zorder=5, **plain, **every)
    _models(ds, ax, variable, (x, y, z), height)
    _axes(ds, ax, (first, second), (x, y), drop, ink)
    ax.view_init(elev=35, azim=azimuth)
    ax.set_box_aspect((*sizes, 0.75 * float(np.sqrt(sizes[0] * sizes[1]))), zoom=1.05)
    ax.set(xlim=x[[0, -1]], ylim=y[[0, -1]], zlim=(drop, high))
    ax.set_facecolor(paper)
    ax.set_axis_off()
    for artist in (*ax.collections, *ax.lines, *ax.texts):
        artist.set_clip_on(False)  # else at the square that the axes take of a wider picture
    return ax


def interpolated(a: np.ndarray, b: np.ndarray, values: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Values (n, m) on a grid, at the points of a finer one, shape (len(x), len(y)); NaN beside one that is not finite.

    Monotone between the points of the grid, so that there is no minimum that they do not have.
    """
    finite = np.isfinite(values)
    filled = np.where(finite, values, np.nanmax(np.where(finite, values, np.nan)))
    fine = PchipInterpolator(b, PchipInterpolator(a, filled, axis=0)(x), axis=1)(y)
    rows, columns = (np.clip(np.searchsorted(old, new, "right") - 1, 0, len(old) - 2) for old, new in ((a, x), (b, y)))
    cells = finite[:-1, :-1] & finite[1:, :-1] & finite[:-1, 1:] & finite[1:, 1:]
    return np.where(cells[np.ix_(rows, columns)], fine, np.nan)


def _colours(z: np.ndarray, x: np.ndarray, y: np.ndarray, levels: np.ndarray, stretch: float) -> np.ndarray:
    """Colour of each point under soft light, paler within a line's width of a level."""
    dx, dy = x[1] - x[0], y[1] - y[0]
    relief = (z - levels[0]) / (levels[-1] - levels[0])
    colours = mpl.colormaps[style.sequential()](relief)
    solid = np.where(np.isfinite(z), z, levels[-1]) * stretch
    lit = LightSource(*LIGHT).shade_rgb(np.swapaxes(colours[..., :3], 0, 1), solid.T, blend_mode="soft", dx=dx, dy=dy)
    colours[..., :3] = np.swapaxes(lit, 0, 1)
    slope = np.hypot(*np.gradient(np.where(np.isfinite(z), z, levels[-1]), dx, dy))
    away = np.min(np.abs(z[..., None] - levels), axis=-1) / np.maximum(slope, 1e-12)
    line = 0.6 * np.exp(-((away / (0.6 * max(dx, dy))) ** 2))
    colours[..., :3] += np.nan_to_num(line)[..., None] * (1 - colours[..., :3])
    return colours


def _map(ax: Axes3D, x: np.ndarray, y: np.ndarray, z: np.ndarray, levels: np.ndarray, drop: float, ground: str) -> None:
    """The map of the surface on the floor."""
    grids = np.meshgrid(x, y, indexing="ij")
    look: dict[str, Any] = {"zdir": "z", "offset": drop, "zorder": 1}
    ax.contourf(*grids, z, levels=levels, cmap=style.sequential(), alpha=0.55 if ground == "light" else 0.45, **look)
    ax.contour(*grids, z, levels=levels, cmap=style.sequential(), linewidths=0.4, **look)


def _models(
    ds: xr.Dataset,
    ax: Axes3D,
    variable: str,
    surface: tuple[np.ndarray, np.ndarray, np.ndarray],
    height: Callable[[np.ndarray], np.ndarray],
) -> None:
    """Models as dots on the surface with their names, and a line along it from each to the mean of the plane's."""
    if "mark" not in ds.dims or f"mark_{variable}" not in ds:
        return
    first, second = map(str, ds[variable].dims)
    places = np.stack([ds[f"mark_{first}"].values, ds[f"mark_{second}"].values], axis=1).astype(float)
    names, (x, y, z) = [str(name) for name in ds["mark"].values], surface
    means = [place for place, name in enumerate(names) if name in MEANS]

    span = float(np.nanmax(z) - np.nanmin(z))
    trail = bool(ds.attrs.get("trail"))
    if trail:
        ends = [(place, place + 1) for place in range(len(names) - 1)]
    else:
        ends = [(place, means[0]) for place in range(len(names)) if means and place not in means]
    feet = height(ds[f"mark_{variable}"].values)
    for start, end in ends:
        path = places[start] + np.linspace(0, 1, 60)[:, None] * (places[end] - places[start])
        cells = [(path[:, axis] - grid[0]) / (grid[1] - grid[0]) for axis, grid in enumerate((x, y))]
        above = map_coordinates(z, cells, order=1, cval=np.nan) + 0.012 * span
        if trail:  # its models lie outside the plane, at losses of their own
            above = np.linspace(feet[start], feet[end], 60)
        ax.plot(*path.T, above, color="white", linewidth=1.6, zorder=8, solid_capstyle="round")
    halo = [patheffects.withStroke(linewidth=2.2, foreground="#101010")]
    for place, name in enumerate(names):
        last = place in means or (trail and place == len(names) - 1)
        look = {"color": "#ffaf19" if last else "white", "markersize": 6.5 if last else 5.0, "markeredgecolor": "black"}
        ax.plot(*places[place], feet[place], marker="o", linestyle="none", zorder=9 + last, **look)
        if last or not trail:
            ax.text(
                *places[place],
                feet[place] + 0.06 * span,
                name,
                color="white",
                fontsize=8,
                ha="center",
                zorder=12,
                path_effects=halo,
            )


def _axes(
    ds: xr.Dataset, ax: Axes3D, names: tuple[str, str], grids: tuple[np.ndarray, np.ndarray], drop: float, ink: str
) -> None:
    """Distances along the two edges of the floor that the camera sees."""
    for axis, (name, grid) in enumerate(zip(names, grids, strict=True)):
        across = grids[1 - axis]
        edge, away = (across[0], -np.ptp(across)) if axis == 0 else (across[-1], np.ptp(across))
        look: dict[str, Any] = {"color": ink, "ha": "center", "va": "center", "zorder": 3}
        ticks = MaxNLocator(4).tick_values(grid[0], grid[-1])
        for tick in ticks[(ticks >= grid[0]) & (ticks <= grid[-1])]:
            ax.text(*_crossed(axis, tick, edge + 0.07 * away), drop, f"{tick:g}", fontsize=6, **look)
        ax.text(*_crossed(axis, grid.mean(), edge + 0.19 * away), drop, direction(ds, name), fontsize=7, **look)


def _crossed(axis: int, along: float, across: float) -> tuple[float, float]:
    """A point by its coordinate along an axis, 0 or 1, and that along the other one."""
    return (along, across) if axis == 0 else (across, along)
