"""A plane as a surface in three dimensions, under light and with shadows."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from mpl_toolkits.mplot3d import Axes3D

from figures.axes.surfaces import common_levels
from figures.looks import style

LIGHT = (150.0, 40.0)
"""Usual place of the light: azimuth from the first axis towards the second, and height, degrees."""

SHADOW = 0.55
"""Brightness of cells that the surface itself hides from the light."""


def lit_surface(
    ds: xr.Dataset,
    *,
    ax: Axes,
    variable: str = "loss",
    azimuth: float = -60.0,
    elevation: float = 35.0,
    light: tuple[float, float] = LIGHT,
    levels: np.ndarray | None = None,
    **look: Any,
) -> Axes:
    """A plane as a surface whose height and colour are the variable, lit from one side; its models stand on pins.

    A surface hides what lies behind it and shows no distances: draw the map (`figures.contour`) beside it.

    Args:
        ds: The variable over two dimensions, as `landscape.surface` returns it.
        ax: Axes of projection "3d".
        variable: Variable of `ds`; a positive loss is shown as its logarithm.
        azimuth, elevation: Place of the camera, degrees.
        light: Azimuth and height of the light, degrees.
        levels: Their ends are those of height and colour; `figures.common_levels` makes them for several frames.
        look: Passed to `Axes3D.plot_surface`.

    Raises:
        ValueError: If the variable has no two dimensions, or the axes are flat.
    """
    values = ds[variable]
    if values.ndim != 2:
        raise ValueError(f"{variable} has dimensions {', '.join(map(str, values.dims))}; a surface needs two.")
    if not isinstance(ax, Axes3D):
        raise ValueError("a surface needs axes in three dimensions: figure.add_subplot(projection='3d').")
    first, second = map(str, values.dims)
    used = common_levels(values, log=variable == "loss") if levels is None else levels
    log = variable == "loss" and used[0] > 0

    def height(numbers: np.ndarray) -> np.ndarray:
        clipped = np.clip(numbers, used[0], used[-1])
        return np.log10(clipped) if log else clipped

    x, y = np.meshgrid(ds[first].values, ds[second].values, indexing="ij")
    z = height(values.values)
    low, high = height(used[[0, -1]])
    relief = (z - low) / max(high - low, 1e-12)
    sizes = (float(np.ptp(ds[first].values)), float(np.ptp(ds[second].values)))
    colours = mpl.colormaps[style.SEQUENTIAL](relief)
    scaled = np.nan_to_num(relief) * 0.5 * max(sizes)
    bright = _brightness(scaled, sizes[0] / (len(x) - 1), sizes[1] / (x.shape[1] - 1), light)
    colours[..., :3] *= (0.35 + 0.65 * bright)[..., None]
    whole: dict[str, Any] = {"rstride": 1, "cstride": 1, "linewidth": 0, "antialiased": False, "shade": False}
    ax.plot_surface(x, y, z, facecolors=colours, **{**whole, **look})
    _pins(ds, ax, variable, (first, second), height, high - low)
    ax.view_init(elev=elevation, azim=azimuth)
    ax.set_box_aspect((sizes[0], sizes[1], 0.5 * max(sizes)))
    ax.set_zlim(low, high + 0.15 * (high - low))
    style.name_axes(ax, style.text(ds[first]), style.text(ds[second]))
    name = style.text(values)
    ax.set_zlabel(f"log10 {name}" if log else name, fontsize=7)
    ax.tick_params(labelsize=6, pad=-2)
    return ax


def _brightness(z: np.ndarray, dx: float, dy: float, light: tuple[float, float], steps: int = 40) -> np.ndarray:
    """Brightness of each cell, 0 to 1: the cosine between its normal and the light, less in shadows that hills cast."""
    azimuth, height = np.radians(light)
    towards = np.array([np.cos(height) * np.cos(azimuth), np.cos(height) * np.sin(azimuth), np.sin(height)])
    along, across = np.gradient(z, dx, dy)
    normal = np.stack([-along, -across, np.ones_like(z)])
    bright: np.ndarray = np.clip(np.tensordot(towards, normal / np.linalg.norm(normal, axis=0), 1), 0.0, 1.0)
    rows, columns = np.indices(z.shape)
    far, shadow = min(dx, dy), np.zeros(z.shape, bool)
    for step in range(1, steps + 1):  # a ray towards the light
        row = np.rint(rows + step * far / dx * np.cos(azimuth)).astype(int)
        column = np.rint(columns + step * far / dy * np.sin(azimuth)).astype(int)
        inside = (row >= 0) & (row < z.shape[0]) & (column >= 0) & (column < z.shape[1])
        met = z[row.clip(0, z.shape[0] - 1), column.clip(0, z.shape[1] - 1)]
        shadow |= inside & (met > z + step * far * np.tan(height) + 1e-9)
    return np.where(shadow, SHADOW * bright, bright)


def _pins(ds: xr.Dataset, ax: Axes3D, variable: str, names: tuple[str, str], height: Any, span: float) -> None:
    if "mark" not in ds.dims or f"mark_{variable}" not in ds:
        return
    for place, mark in enumerate(map(str, ds["mark"].values)):
        x, y = (float(ds[f"mark_{name}"][place]) for name in names)
        foot = float(height(np.array([float(ds[f"mark_{variable}"][place])]))[0])
        ax.plot([x, x], [y, y], [foot, foot + 0.12 * span], color="black", linewidth=0.8, zorder=10)
        look = {"marker": "X" if mark == "mean" else "^", "markersize": 5, "markeredgecolor": "black", "zorder": 11}
        ax.plot([x], [y], [foot + 0.12 * span], color="white", **look)
