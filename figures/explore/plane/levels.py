"""The order in which the points of a grid are evaluated: coarse first, then finer lattices, then all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from landscape.surfaces.interpolation import filled
from landscape.surfaces.point_table import PointTable, grid_dims
from landscape.surfaces.refinement import CELLS, Refinement, RefinementTrial
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
        trials: Points of the mask that are predicted from those before: the other points of the grid are interpolated,
            with the error of these; None: only the points of the mask are shown.
    """

    mask: np.ndarray
    precision: Precision
    samples: int | None = None
    trials: tuple[RefinementTrial, ...] | None = None


def stages(shape: tuple[int, ...], precision: Precision) -> list[Stage]:
    """The coarsest level roughly (bfloat16, few samples), then all levels as asked for."""
    masks = levels(shape)
    return [Stage(masks[0], "fast", PREVIEW_SAMPLES), *(Stage(mask, precision) for mask in masks[len(masks) > 1 :])]


def refinement(shape: tuple[int, ...], tolerance: float) -> Refinement | None:
    """What a grid shows between its first level and all points; None where nothing is interpolated."""
    return Refinement((shape[0], shape[1]), tolerance) if len(shape) == 2 and min(shape) > CELLS else None


def levels(shape: tuple[int, ...]) -> list[np.ndarray]:
    """Masks over the grid, each with the points of the one before.

    Maps have the first lattice of `landscape.interpolated_surface`, of 5 x 5 points, and all; `refinement` has those
    between. Lines have every 4th point, every 2nd, all; a level is left out where it does not have the last point.
    """
    if (refined := refinement(shape, np.inf)) is not None:
        return [refined.requested, *([] if refined.converged else [_every(shape, 1)])]
    return [_every(shape, step) for step in (4, 2, 1) if step == 1 or (len(shape) == 1 and _suits(shape[0], step))]


def is_regular(mask: np.ndarray) -> bool:
    """Whether the points of a level are all points of some rows and columns."""
    return bool(mask[np.ix_(*_ticks(mask))].all())


def stage_surface(table: PointTable, stage: Stage) -> xr.Dataset:
    """The labelled surface of a stage.

    Raises:
        ValueError: If a value is infinite, where interpolation is asked for.
    """
    ds = table.surface()
    if stage.trials is not None:
        return filled(ds, stage.mask, stage.trials)
    return ds.isel(dict(zip(grid_dims(ds, "loss"), _ticks(stage.mask), strict=True)))


def groups(cells: np.ndarray, rows: np.ndarray, seconds: float | None, budget: float, threads: int) -> list[np.ndarray]:
    """Cells in calls of equal size, as many for each thread, of about so many seconds.

    Args:
        cells: Places in `rows`.
        rows: Coefficients of all points; points that differ in the first two only stay together, as they share work.
        seconds: Of a point; None if that is not known yet: one point per thread.
        budget: Seconds of a call.
        threads: Calls at a time.
    """
    if seconds is None:
        return [cells[start : start + 1] for start in range(min(threads, len(cells)))]
    ordered = cells[np.lexsort(rows[cells, 2:].T)] if rows.shape[1] > 2 else cells
    most = max(1, min(int(budget / max(seconds, 1e-6)), MOST_POINTS))
    turns = -(-len(cells) // (most * threads))
    return [batch for batch in np.array_split(ordered, turns * threads) if len(batch)]


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
