"""A plane as a surface in three dimensions, by matplotlib: soft light, draped level lines, the map below it, paths."""

from __future__ import annotations

from typing import Any, cast

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D, proj3d

from figures.axes.colour_bars import norm, round_ticks
from figures.axes.placed_text import spread_names, ticks
from figures.axes.relief import AZIMUTH, EDGE, ELEVATION, MEAN, MODEL, Relief, relief
from figures.looks import palette, style

Box = tuple[float, float, float, float]

FADED = 0.55
"""How much of the ground shines through the map below a surface."""


def lit_surface(
    ds: xr.Dataset,
    *,
    ax: Axes,
    variable: str = "loss",
    azimuth: float = AZIMUTH,
    levels: np.ndarray | None = None,
    ground: str = "light",
    fine: int = 200,
) -> Axes:
    """A plane as a lit surface whose height and colour are the variable, with level lines on it and its map below.

    What is drawn is computed by `figures.axes.relief`. Lines lead from each model along the surface to their mean, or
    along a path (attribute `trail`). Distances are those of the two axes.

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
        LookupError: If no value is finite.
    """
    if not isinstance(ax, Axes3D):
        raise ValueError("a surface needs axes in three dimensions: figure.add_subplot(projection='3d').")
    require_ground(ground)
    scene = relief(ds, variable, levels=levels, fine=fine)
    draw_surface(scene, ax, ground, azimuth=azimuth)
    for path in scene.paths:
        ax.plot(*path.T, color=MODEL, linewidth=1.8, zorder=8, solid_capstyle="round", clip_on=False)
    _models(scene, ax)
    return ax


def require_ground(ground: str) -> None:
    """Refuse an unknown ground.

    Raises:
        ValueError: If it is none of `GROUNDS`.
    """
    if ground not in palette.GROUNDS:
        raise ValueError(f"ground is {ground!r}; accepted: {', '.join(palette.GROUNDS)}.")


def draw_surface(
    scene: Relief, ax: Axes3D, ground: str, *, azimuth: float = AZIMUTH, colours: np.ndarray | None = None
) -> None:
    """The surface, its level lines, the map below it and both axes.

    Args:
        colours: Of the points of the surface before it is lit, shape (n, m, 3), in place of those of the heights.
    """
    paper, ink = palette.GROUNDS[ground]
    if colours is None:
        colours = mpl.colormaps[style.sequential()]((scene.z - scene.levels[0]) / scene.span)[..., :3]
    ax.computed_zorder = False
    ax.set_proj_type("ortho")
    ax.view_init(elev=ELEVATION, azim=azimuth)
    ax.margins(0)
    ax.set(xlim=scene.x[[0, -1]], ylim=scene.y[[0, -1]], zlim=(scene.floor, scene.levels[-1]))
    _fit(scene, ax)
    ax.set_facecolor(paper)
    ax.set_axis_off()
    faded = (1 - FADED) * colours + FADED * np.array(to_rgb(paper))
    solid, there = np.where(np.isfinite(scene.z), scene.z, scene.levels[-1]), np.isfinite(scene.z)[..., None]
    for z, shown, zorder in ((np.full_like(solid, scene.floor), faded, 1), (solid, lit(colours, scene.light), 5)):
        paint = np.concatenate([np.nan_to_num(shown).clip(0, 1), there], axis=2)
        ax.add_collection(_Sheet(scene.x, scene.y, z, paint, zorder=zorder), autolim=False)
    for line in scene.flat_lines:
        ax.plot(*line.T, color=ink, linewidth=0.5, alpha=0.35, zorder=2)
    for line in scene.lines:
        line[scene.hidden(line, azimuth)] = np.nan
        ax.plot(*line.T, color="white", linewidth=0.9, alpha=0.6, zorder=6)
    _axes(scene, ax, ink)
    for artist in (*ax.collections, *ax.lines, *ax.texts):
        artist.set_clip_on(False)  # else at the square that the axes take of a wider picture


def lit(colours: np.ndarray, light: np.ndarray) -> np.ndarray:
    """Colours (n, m, 3) under light (n, m), by the soft blending of Pegtop."""
    share = 0.15 + 0.7 * light[..., None]
    return np.asarray(2 * share * colours + (1 - 2 * share) * colours**2)


def scale_bar(figure: Figure, values: xr.DataArray, levels: np.ndarray, ground: str, box: Box) -> None:
    """The scale of a surface's colours and heights, in a box of the figure: left, bottom, width, height."""
    ink = palette.GROUNDS[ground][1]
    bar = figure.colorbar(ScalarMappable(norm(levels), style.sequential()), cax=figure.add_axes(box))
    round_ticks(bar, levels, tall=True)
    bar.set_label(style.text(values), color=ink)
    bar.ax.tick_params(which="both", colors=ink)


def flattened(ax: Axes3D, points: np.ndarray) -> np.ndarray:
    """Where the camera sees points (p, 3), in the flat units of the axes, shape (p, 2)."""
    x, y, _ = proj3d.proj_transform(*points.T, ax.get_proj())
    return np.column_stack([x, y])


def pixels(ax: Axes3D, points: np.ndarray) -> np.ndarray:
    """Where points (p, 3) are on the canvas, pixels from the lower left corner, shape (p, 2)."""
    ax.apply_aspect()
    return np.asarray(ax.transData.transform(flattened(ax, points)))


def _fit(scene: Relief, ax: Axes3D) -> None:
    """Make the scene as large as its place allows."""
    ax.set_box_aspect(tuple(scene.box), zoom=1)
    solid = np.where(np.isfinite(scene.z), scene.z, scene.levels[-1])
    x, y = (np.ravel(side) for side in np.meshgrid(scene.x[[0, -1]], scene.y[[0, -1]], indexing="ij"))
    above = solid[:: len(scene.x) - 1, :: len(scene.y) - 1].ravel()
    corners = [np.column_stack([x, y, z]) for z in (above, np.full(4, scene.floor))]
    room = ax.get_position(original=True).transformed(ax.figure.transSubfigure)
    middle = [(room.x0 + room.x1) / 2, (room.y0 + room.y1) / 2]
    size = 2 * np.abs(pixels(ax, np.concatenate(corners)) - middle).max(0)
    ax.set_box_aspect(tuple(scene.box), zoom=float(min(0.8 * room.width / size[0], 0.96 * room.height / size[1])))


class _Sheet(QuadMesh):
    """A surface of smooth colours in axes of three dimensions, drawn from the far corner to the near one."""

    def __init__(self, x: np.ndarray, y: np.ndarray, z: np.ndarray, colours: np.ndarray, **look: Any) -> None:
        grid = np.meshgrid(x, y, indexing="ij")
        self.points, self.colours = np.stack([*grid, z], axis=2), colours
        super().__init__(np.zeros((*z.shape, 2)), shading="gouraud", rasterized=True, **look)

    def do_3d_projection(self) -> float:
        """Place the points where the camera of the axes sees them; their least depth."""
        axes = cast(Axes3D, self.axes)
        x, y, depth = (
            row.reshape(self.colours.shape[:2]) for row in proj3d.proj_transform(*self.points.reshape(-1, 3).T, axes.M)
        )
        turn = tuple(
            slice(None, None, 1 if first >= last else -1)
            for first, last in ((depth[0].mean(), depth[-1].mean()), (depth[:, 0].mean(), depth[:, -1].mean()))
        )
        self._coordinates = np.stack([x, y], axis=2)[turn]
        self.set_facecolor(cast(Any, self.colours[turn].reshape(-1, 4)))
        return float(depth.min())


def _models(scene: Relief, ax: Axes3D) -> None:
    """Models as dots, on the map below too, and their names, which stand clear of each other."""
    for name, point, main in zip(scene.names, scene.places, scene.main, strict=True):
        look = {"color": MEAN if main else MODEL, "markersize": 8 if main else 6, "markeredgecolor": EDGE}
        ax.plot(*point[:, None], marker="o", linestyle="none", zorder=9 + main, label=name, clip_on=False, **look)
        below = {**look, "markersize": 5 if main else 3.5, "zorder": 3 + main}
        ax.plot(*point[:2, None], scene.floor, marker="o", linestyle="none", clip_on=False, **below)
    named = scene.main if scene.trail else np.ones(len(scene.names), bool)
    names = [name for name, shown in zip(scene.names, named, strict=True) if shown]
    write_names(ax, flattened(ax, scene.places[named]), names) if names else None


def write_names(ax: Axes, points: np.ndarray, names: list[str], size: float = 9.0) -> None:
    """Names beside points (k, 2) of flat axes, or of axes in three dimensions as `flattened` gives them."""
    dot = ax.figure.dpi / 72
    at = ax.transData.transform(points) / dot
    shifts = spread_names(at, [0.6 * size * len(name) for name in names], 1.2 * size) - at
    halo = [patheffects.withStroke(linewidth=2.2, foreground=EDGE)]
    look: dict[str, Any] = {"color": "white", "fontsize": size, "ha": "center", "va": "center", "zorder": 12}
    for point, shift, name in zip(points, shifts, names, strict=True):
        note = ax.annotate(name, point, shift, textcoords="offset points", path_effects=halo, **look)
        note.set(in_layout=False, annotation_clip=False)


def _axes(scene: Relief, ax: Axes3D, ink: str) -> None:
    """Distances along the two edges of the floor that the camera sees."""
    for axis, (title, grid) in enumerate(zip(scene.titles, (scene.x, scene.y), strict=True)):
        across = (scene.x, scene.y)[1 - axis]
        edge, away = (across[0], -np.ptp(across)) if axis == 0 else (across[-1], np.ptp(across))
        look: dict[str, Any] = {"color": ink, "va": "center", "zorder": 3}
        one_unit = all(name.startswith("distance") for name in scene.titles)
        for tick in ticks(grid[0], grid[-1], np.ptp(across) if one_unit else np.inf):
            ax.text(
                *_crossed(axis, tick, edge + 0.06 * away), scene.floor, f"{tick:g}", fontsize=7, ha="center", **look
            )
        end = _crossed(axis, grid.mean(), edge + 0.15 * away)
        ax.text(*end, scene.floor, title, fontsize=8, ha=("right", "left")[axis], **look)


def _crossed(axis: int, along: float, across: float) -> tuple[float, float]:
    """A point by its coordinate along an axis, 0 or 1, and that along the other one."""
    return (along, across) if axis == 0 else (across, along)
