"""The order in which the points of a grid are evaluated: coarse first, and in bfloat16 before exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from landscape.sweep.precision import Precision

MOST_POINTS = 64
"""Points of one call, at most: more of them share little more work."""


@dataclass(frozen=True)
class Stage:
    """Points that are shown together.

    Args:
        mask: Which grid points, flat, shape (P,).
        precision: Precision that they are wanted in.
    """

    mask: np.ndarray
    precision: Precision


def stages(shape: tuple[int, ...], precision: Precision) -> list[Stage]:
    """Levels of a grid in bfloat16, then in the precision that is asked for, which may be the same one."""
    masks = levels(shape)
    first = [Stage(mask, "fast") for mask in masks]
    return first if precision == "fast" else [*first, *(Stage(mask, "exact") for mask in masks)]


def levels(shape: tuple[int, ...]) -> list[np.ndarray]:
    """Masks over the grid points, flat: five per axis of a map, every 4th point, every 2nd, all.

    A level is left out where it has no last point of an axis, or more than half as many points per axis as the next.
    """
    steps = [tuple(step for _ in shape) for step in (4, 2, 1) if step == 1 or _suits(shape, step)]
    if len(shape) > 1 and all(points > 5 and (points - 1) % 4 == 0 for points in shape):
        coarse = tuple((points - 1) // 4 for points in shape)
        steps = [coarse, *(step for step in steps if 2 * max(step) <= min(coarse))]
    return [_every(shape, step) for step in steps]


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


def _suits(shape: Sequence[int], step: int) -> bool:
    return all((points - 1) % step == 0 and points > 4 * step for points in shape)


def _every(shape: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray:
    axes = [np.arange(points) % step == 0 for points, step in zip(shape, steps, strict=True)]
    mask: np.ndarray = np.logical_and.reduce(np.meshgrid(*axes, indexing="ij")).ravel()
    return mask
