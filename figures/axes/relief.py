"""What a surface in three dimensions shows, computed once for both drawing libraries, of which it imports none."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import contourpy
import numpy as np
import xarray as xr

from figures.axes.interpolated import interpolated
from figures.looks import words

AZIMUTH, ELEVATION = -60.0, 42.0
"""Where the camera stands, degrees. It is far away: parallel lines stay parallel."""

LIGHT = (225.0, 45.0)
"""Azimuth and elevation of the light, degrees: it stands at the low ends of both axes."""

MODEL, MEAN, EDGE = "#ffffff", "#ffaf19", "#101010"
"""Colours of models, of their mean, and around both."""

MEANS = ("mean", "by size")
"""Marks that are means of the others."""

TALL, DROP, LIFT = 0.95, 0.65, 0.02
"""Height of the scene in sides of the map; of the map below the surface, and of lines above it, in the surface's."""

COUNT = 14
"""Level lines."""


@dataclass(frozen=True)
class Relief:
    """A surface over a plane, with heights in decimal logarithms where `log`.

    Args:
        titles: Labels of both axes.
        x, y, z: Points of the drawn surface: shapes (n,), (m,) and (n, m); NaN where there is none.
        levels: Heights of the level lines, those of all reliefs that are compared. Colours span them.
        log: Heights are logarithms.
        names: Of the models, with their places (k, 3).
        links: Pairs of models that a line joins.
        trail: The models are a path, each with a loss of its own; else lines lie on the surface.
    """

    titles: tuple[str, str]
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    levels: np.ndarray
    log: bool
    names: tuple[str, ...] = ()
    places: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    links: tuple[tuple[int, int], ...] = ()
    trail: bool = False

    @property
    def span(self) -> float:
        """Height of the surface from the lowest to the highest level."""
        return float(self.levels[-1] - self.levels[0])

    @property
    def floor(self) -> float:
        """Height of the map below the surface."""
        return float(self.levels[0]) - DROP * self.span

    @cached_property
    def box(self) -> np.ndarray:
        """Lengths of the scene along the three axes, relative to the geometric mean of the first two, shape (3,)."""
        sides = np.array([np.ptp(self.x), np.ptp(self.y)])
        return np.array([*sides / np.sqrt(sides.prod()), TALL])

    @cached_property
    def light(self) -> np.ndarray:
        """How bright each point of the surface is under the light, 0 to 1, shape (n, m)."""
        solid = np.where(np.isfinite(self.z), self.z, self.levels[-1])
        steep = np.gradient(solid, self.x / np.ptp(self.x) * self.box[0], self.y / np.ptp(self.y) * self.box[1])
        normal = np.stack([*(-side * TALL / (1 + DROP) / self.span for side in steep), np.ones_like(solid)])
        bright = np.tensordot(towards(*LIGHT), normal / np.linalg.norm(normal, axis=0), 1)
        low, high = bright.min(), bright.max()
        return np.asarray((bright - low) / (high - low) if high - low > 1e-6 else np.full_like(bright, 0.5))

    @cached_property
    def lines(self) -> list[np.ndarray]:
        """Level lines on the surface, each (points, 3)."""
        contours = contourpy.contour_generator(self.x, self.y, np.ma.masked_invalid(self.z.T))
        return [
            np.column_stack([line, np.full(len(line), level)])
            for level in self.levels[1:-1]
            for line in cast(list[np.ndarray], contours.lines(level))
        ]

    @property
    def flat_lines(self) -> list[np.ndarray]:
        """The level lines on the map below."""
        return [np.column_stack([line[:, :2], np.full(len(line), self.floor)]) for line in self.lines]

    @cached_property
    def paths(self) -> list[np.ndarray]:
        """Lines from models to their mean, or from each to the next, each (60, 3)."""
        share = np.linspace(0, 1, 60)[:, None]
        straight = [self.places[a] + share * (self.places[b] - self.places[a]) for a, b in self.links]
        return straight if self.trail else [self.on_surface(path) for path in straight]

    @cached_property
    def main(self) -> np.ndarray:
        """Which models are means, or the end of a path, shape (k,)."""
        last = np.arange(len(self.names)) == len(self.names) - 1
        return last if self.trail else np.array([name in MEANS for name in self.names], dtype=bool)

    def values(self, heights: np.ndarray) -> np.ndarray:
        """The variable at heights."""
        return np.asarray(10**heights if self.log else heights)

    def raised(self, points: np.ndarray, times: float = 1.0) -> np.ndarray:
        """Points (p, 3) so much higher that the surface does not bury them."""
        return points + np.array([0, 0, times * LIFT * self.span])

    def on_surface(self, points: np.ndarray) -> np.ndarray:
        """Points (p, 2 or 3) moved up or down to the surface, shape (p, 3); NaN where there is none."""
        return np.column_stack([points[:, :2], self._height(points[:, :2])])

    def hidden(self, points: np.ndarray, azimuth: float = AZIMUTH) -> np.ndarray:
        """Which points (p, 3) the surface hides from the camera, shape (p,)."""
        ray = towards(azimuth, ELEVATION) / self.box * self._sides
        way = points[:, None] + np.linspace(0.005, 1.2, 240)[:, None] * ray
        above = self._height(way[..., :2].reshape(-1, 2)).reshape(way.shape[:2])
        return np.asarray((above > way[..., 2] + 0.002 * self.span).any(1))

    def screen(self, points: np.ndarray, azimuth: float = AZIMUTH) -> np.ndarray:
        """Where the camera sees points (p, 3), right and up, in the units of `box`, shape (p, 2)."""
        low = np.array([self.x[0], self.y[0], self.floor])
        centred = ((points - low) / self._sides - 0.5) * self.box
        turn, lean = np.radians([azimuth, ELEVATION])
        right = np.array([-np.sin(turn), np.cos(turn), 0])
        up = np.array([-np.cos(turn) * np.sin(lean), -np.sin(turn) * np.sin(lean), np.cos(lean)])
        return np.stack([centred @ right, centred @ up], axis=1)

    @property
    def _sides(self) -> np.ndarray:
        return np.array([np.ptp(self.x), np.ptp(self.y), self.levels[-1] - self.floor])

    def _height(self, points: np.ndarray) -> np.ndarray:
        cells = [(points[:, i] - grid[0]) / (grid[1] - grid[0]) for i, grid in enumerate((self.x, self.y))]
        from scipy.ndimage import map_coordinates  # here, as in `interpolated`: scipy takes half a second to load

        return np.asarray(map_coordinates(self.z, cells, order=1, cval=np.nan))


def relief(ds: xr.Dataset, variable: str = "loss", *, levels: np.ndarray | None = None, fine: int = 200) -> Relief:
    """A plane as a surface in three dimensions; a positive loss is shown as its logarithm.

    Between the points of the grid it is interpolated without new minima (`scipy.interpolate.PchipInterpolator` along
    both axes); values that are not finite leave a hole, and so do those above the levels.

    Args:
        ds: The variable over two dimensions; marks as `landscape.surface` gives them, a path with attribute `trail`.
        levels: Values of the level lines; `spaced_levels` makes them for several planes.
        fine: Cells along each axis.

    Raises:
        ValueError: If the variable does not have two dimensions.
        LookupError: If no value is finite.
    """
    values = ds[variable]
    if values.ndim != 2:
        raise ValueError(f"{variable} has dimensions {', '.join(map(str, values.dims))}; a surface needs two.")
    levels = spaced_levels([values], log=variable == "loss") if levels is None else levels
    log = variable == "loss" and bool(levels[0] > 0)

    def height(numbers: np.ndarray) -> np.ndarray:
        return np.log10(np.where(numbers > 0, numbers, np.nan)) if log else np.asarray(numbers, dtype=float)

    first, second = map(str, values.dims)
    x, y = (np.linspace(float(ds[name][0]), float(ds[name][-1]), fine + 1) for name in (first, second))
    heights = height(levels)
    z = interpolated(ds[first].values, ds[second].values, height(values.values), x, y)
    z = np.where(z > heights[-1] + 1e-9, np.nan, np.maximum(z, heights[0]))
    surface = Relief((direction(ds, first), direction(ds, second)), x, y, z, heights, log)
    if "mark" not in ds.dims or f"mark_{variable}" not in ds:
        return surface
    names = tuple(str(name) for name in ds["mark"].values)
    places = np.stack([*(ds[f"mark_{name}"].values.astype(float) for name in (first, second)),
                       height(ds[f"mark_{variable}"].values)], axis=1)  # fmt: skip
    means = [at for at, name in enumerate(names) if name in MEANS]
    trail = bool(ds.attrs.get("trail"))
    steps = [(at, at + 1) for at in range(len(names) - 1)]
    links = steps if trail else [(at, means[0]) for at in range(len(names)) if means and at not in means]
    return replace(surface, names=names, places=places, links=tuple(links), trail=trail)


def spaced_levels(values: Sequence[xr.DataArray], *, count: int = COUNT, log: bool, top: float = 1.0) -> np.ndarray:
    """Levels common to several maps, evenly spaced in log where asked for and all values are positive.

    Args:
        top: Quantile of the values at the highest level.

    Raises:
        LookupError: If no value is finite.
    """
    flat = np.concatenate([np.ravel(array) for array in values])
    flat = flat[np.isfinite(flat)]
    if not len(flat):
        raise LookupError("none of the surfaces has a finite value; compute them first.")
    low, high = float(flat.min()), float(np.quantile(flat, top))
    if log and low > 0:
        return np.geomspace(low, max(high, low * 1.01), count)
    return np.linspace(low, max(high, low + 1e-3), count)


def direction(ds: xr.Dataset, name: str) -> str:
    """Axis label of a coordinate of a plane: how far along which direction; other coordinates by their own name.

    alpha and beta are coordinates along the directions u and v; in a plane with one unit length they are distances.
    """
    letter = {"alpha": "u", "beta": "v"}.get(name)
    values = ds.get(name, xr.DataArray(0.0))  # places of a path may have no grid
    if letter is None or values.attrs.get("long_name", name) != name:
        return words.text(values)
    kind = "distance" if ds.attrs.get("isometric", 0) == 1 else "coordinate"
    return words.with_unit(f"{kind} along {letter}", values)


def towards(azimuth: float, elevation: float) -> np.ndarray:
    """Unit vector from the scene in a direction given in degrees, shape (3,)."""
    turn, lean = np.radians([azimuth, elevation])
    return np.array([np.cos(turn) * np.cos(lean), np.sin(turn) * np.cos(lean), np.sin(lean)])
