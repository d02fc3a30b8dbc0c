"""The order in which the points of a grid are evaluated: coarse first, then finer lattices, then all."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import xarray as xr

from landscape.surfaces.interpolation import CELLS, Trial, filled, lattices, predicted
from landscape.surfaces.point_table import PointTable, grid_dims
from landscape.sweep.precision import Precision

PREVIEW_SAMPLES = 256
"""Samples of the first picture, at most."""

MOST_POINTS = 64
"""Points of one call, at most: more of them share little more work."""


@dataclass(frozen=True)
class Stage:
    """Points that are shown together.

    Args:
        mask: Which grid points, shape of the grid.
        precision: Precision that they are wanted in.
        samples: At most so many samples; None: all that are asked for.
        before: Points of the lattice before, if the other points of the grid are interpolated from these, and the error
            of that is measured at the points that are new; None: only the points of the mask are shown.
    """

    mask: np.ndarray
    precision: Precision
    samples: int | None = None
    before: np.ndarray | None = None


def stages(shape: tuple[int, ...], precision: Precision) -> list[Stage]:
    """The coarsest level roughly (bfloat16, few samples), then all as asked for, with maps interpolated between."""
    masks = levels(shape)
    map_of_points = len(shape) == 2
    between = [
        Stage(mask, precision, before=before if map_of_points else None) for before, mask in pairwise(masks[:-1])
    ]
    ends = [Stage(masks[0], precision), *between, Stage(masks[-1], precision)]
    return [Stage(masks[0], "fast", PREVIEW_SAMPLES), *(ends if len(masks) > 1 else ends[1:])]


def levels(shape: tuple[int, ...]) -> list[np.ndarray]:
    """Masks over the grid, each with the points of the one before.

    Maps have the lattices of `landscape.interpolated_surface`, the first of 5 x 5 points. Lines have every 4th point,
    every 2nd, all; a level is left out where it does not have the last point.
    """
    if len(shape) == 2 and min(shape) > CELLS:
        return list(lattices((shape[0], shape[1])))
    return [_every(shape, step) for step in (4, 2, 1) if step == 1 or (len(shape) == 1 and _suits(shape[0], step))]


def is_regular(mask: np.ndarray) -> bool:
    """Whether the points of a level are all points of some rows and columns."""
    return bool(mask[np.ix_(*_ticks(mask))].all())


def level_surface(table: PointTable, mask: np.ndarray, before: np.ndarray | None = None) -> xr.Dataset:
    """The labelled surface of a level.

    Args:
        table: Values at its points.
        mask: The points.
        before: Points of the level before: with these the whole grid, interpolated from the points of the mask, and the
            error of what `before` predicted for the others (`landscape.interpolated_surface`).

    Raises:
        ValueError: If a value is infinite, where interpolation is asked for.
    """
    ds = table.surface()
    if before is None:
        return ds.isel(dict(zip(grid_dims(ds, "loss"), _ticks(mask), strict=True)))
    trial = Trial(predicted(ds, before), mask & ~before)
    return filled(ds, mask, predicted(ds, mask), [trial])


def parts(cells: np.ndarray, rows: np.ndarray, seconds: float | None, budget: float, threads: int) -> list[np.ndarray]:
    """Cells in calls of equal size, as many for each thread, of about so many seconds.

    Args:
        cells: Places in `rows`.
        rows: Coefficients of all points; points that differ in the first two only stay together, as they share work.
        seconds: Of a point; None if that is not known yet: one point per thread.
        budget: Seconds of a call.
        threads: Calls at a time.
    """
    if seconds is None:
        return [cells[place : place + 1] for place in range(min(threads, len(cells)))]
    ordered = cells[np.lexsort(rows[cells, 2:].T)] if rows.shape[1] > 2 else cells
    most = max(1, min(int(budget / max(seconds, 1e-6)), MOST_POINTS))
    turns = -(-len(cells) // (most * threads))
    return [part for part in np.array_split(ordered, turns * threads) if len(part)]


def _suits(points: int, step: int) -> bool:
    return (points - 1) % step == 0 and points > 4 * step


def _every(shape: tuple[int, ...], step: int) -> np.ndarray:
    mask = np.zeros(shape, dtype=bool)
    mask[tuple(slice(None, None, step) for _ in shape)] = True
    return mask


def _ticks(mask: np.ndarray) -> list[np.ndarray]:
    """Numbers of the rows and columns that have points."""
    others = [tuple(other for other in range(mask.ndim) if other != axis) for axis in range(mask.ndim)]
    return [np.flatnonzero(mask.any(other)) for other in others]
