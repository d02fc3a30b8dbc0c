"""A plane that is evaluated at a growing part of its points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from landscape.model.task import Task
from landscape.surfaces.interpolation import Planes, Trial, predicted
from landscape.surfaces.point_table import metrics_of
from landscape.surfaces.surface import surface
from landscape.sweep.grid import Sweep

RANDOM = 32
"""Points drawn at random that a stated error rests on: 0.91^32 = 0.05."""


class PartialGrid:
    """State of a computation: the dataset so far, and a mask of the points that this computation requested.

    Args:
        task, sweep: As `surface` takes them.
        first: Mask over the grid of the points that are evaluated first.
        known: An earlier, perhaps partial result of the same call; what was interpolated there is not used.
        options: Further arguments of `surface`.
    """

    def __init__(self, task: Task, sweep: Sweep, first: np.ndarray, known: xr.Dataset | None, **options: Any) -> None:
        self._task, self._sweep, self._options = task, sweep, options
        self.ds = self._evaluated(first, None if known is None else _without_interpolated(known))
        self.requested = first
        self._planes: Planes | None = None

    def evaluate(self, mask: np.ndarray) -> None:
        """Evaluate the points of a mask that includes all earlier ones."""
        self.ds, self.requested, self._planes = self._evaluated(mask, self.ds), mask, None

    def _evaluated(self, mask: np.ndarray, known: xr.Dataset | None) -> xr.Dataset:
        return surface(self._task, replace(self._sweep, inside=mask), known=known, **self._options)

    def predicted(self) -> Planes:
        """Every metric on the whole grid, from the points that are evaluated."""
        if self._planes is None:
            self._planes = predicted(self.ds, self.requested)
        return self._planes


def lattice_trials(
    grid: PartialGrid,
    lattices: Iterable[np.ndarray],
    guess: Callable[[], Any],
    close: Callable[[Trial], bool],
    budget: int | None,
) -> Iterator[tuple[list[Trial], bool]]:
    """Evaluate lattice after lattice, and `RANDOM` points after one that was predicted closely, until these are too.

    Args:
        grid: Its points are evaluated.
        lattices: Masks over the grid.
        guess: The surface from the points that are evaluated.
        close: Whether what was predicted is close enough, asked once the points are evaluated.
        budget: Points evaluated at most; None: all.

    Yields:
        The trials of a lattice, that of the random points last, and whether the surface is complete.
    """
    for lattice in lattices:
        trials, near = list[Trial](), True
        while near and len(trials) < 2 and not grid.requested.all():
            wanted = grid.requested | (_random_points(grid.requested) if trials else lattice)
            if budget is not None and wanted.sum() > budget:
                if trials:
                    yield trials, False
                return
            trials.append(Trial(guess(), wanted & ~grid.requested))
            grid.evaluate(wanted)
            near = bool(grid.requested.all()) or close(trials[-1])
        yield trials, near
        if near:
            return


def _random_points(requested: np.ndarray) -> np.ndarray:
    """Mask of points, drawn from those that are not requested yet; the same ones for the same mask."""
    free = np.flatnonzero(~requested)
    numbers = np.random.default_rng(len(free)).choice(free, min(RANDOM, len(free)), replace=False)
    return np.isin(np.arange(requested.size), numbers).reshape(requested.shape)


def require_plane(sweep: Sweep, tolerance: float, share_of: str) -> None:
    """Raise ValueError if points of the sweep cannot be interpolated, or not to this share of the range or value."""
    if len(sweep.shape) != 2 or sweep.inside is not None:
        raise ValueError(f"the sweep has dimensions {', '.join(sweep.coords)}; interpolation is for full grids of two.")
    if not tolerance > 0:
        raise ValueError(f"tolerance is {tolerance}; it is a share of the {share_of} above 0, such as 0.01.")


def _without_interpolated(known: xr.Dataset) -> xr.Dataset:
    """An earlier result with NaN where it was interpolated."""
    if "interpolated" not in known:
        return known
    plain = known.drop_vars("interpolated")
    return plain.assign({name: plain[name].where(~known["interpolated"]) for name in metrics_of(plain)})
