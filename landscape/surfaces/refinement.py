"""Which points of a plane are evaluated: nested lattices, and random points where one was predicted closely."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from landscape.sweep.grid import Sweep

CELLS = 4
"""Cells per axis of the first lattice, which has 5 x 5 points."""

RANDOM = 32
"""Points drawn at random that a stated error rests on: 0.91^32 = 0.05."""


@dataclass(frozen=True)
class RefinementTrial:
    """Points that are predicted from those before; masks over the grid."""

    before: np.ndarray
    fresh: np.ndarray


class Refinement:
    """Lattice after lattice, and `RANDOM` points after one that was predicted closely, until these are too.

    Attributes:
        requested: Mask over the grid of all points that are asked for so far.
        trials: Those of the last lattice, and random ones after it.
        converged: Whether the last trials were close, or all points are asked for.

    Args:
        shape: Of the grid.
        tolerance: Largest accepted error, as a share of the range.
        budget: Points asked for at most; None: all.
    """

    def __init__(self, shape: tuple[int, int], tolerance: float, budget: int | None = None) -> None:
        self.requested, *self._finer = lattices(shape)
        self.trials: list[RefinementTrial] = []
        self.converged = bool(self.requested.all())
        self._tolerance, self._budget = tolerance, budget

    def advance(self, share: float) -> bool:
        """Ask for further points; whether there are any.

        Args:
            share: Largest error of the trials, as a share of the range, once their points are evaluated.
        """
        close = bool(self.trials) and share <= self._tolerance
        self.converged = bool(self.requested.all()) or (close and len(self.trials) > 1)
        if self.converged:
            return False
        wanted = self.requested | (_random_points(self.requested) if close else self._finer.pop(0))
        if self._budget is not None and wanted.sum() > self._budget:
            return False
        self.trials = [*(self.trials if close else ()), RefinementTrial(self.requested, wanted & ~self.requested)]
        self.requested = wanted
        return True


def lattices(shape: tuple[int, int]) -> Iterator[np.ndarray]:
    """Masks over a grid of this shape, each a part of the next; the last one has all points.

    Every other one has 2^k 4 + 1 points per axis, as evenly spaced as the grid allows; the ones between add the middles
    of the cells.
    """
    cells, before = CELLS, 0
    while True:
        for spacing, middles in ((2, False), (2, True)):
            rows, columns = (np.arange(2 * cells + 1) * (count - 1) * 2 // (2 * cells) for count in shape)
            mask = np.zeros(shape, dtype=bool)
            mask[np.ix_((rows[::spacing] + 1) // 2, (columns[::spacing] + 1) // 2)] = True
            if middles:
                mask[np.ix_((rows[1::2] + 1) // 2, (columns[1::2] + 1) // 2)] = True
            if mask.sum() > before:
                yield mask
            before = int(mask.sum())
        if before == mask.size:
            return
        cells *= 2


def _random_points(requested: np.ndarray) -> np.ndarray:
    """Mask of points, drawn from those that are not requested yet; the same ones for the same mask."""
    free = np.flatnonzero(~requested)
    numbers = np.random.default_rng(len(free)).choice(free, min(RANDOM, len(free)), replace=False)
    return np.isin(np.arange(requested.size), numbers).reshape(requested.shape)


def require_plane(sweep: Sweep, tolerance: float) -> tuple[int, int]:
    """Shape of the grid of a sweep whose points can be interpolated.

    Raises:
        ValueError: If it is not a full grid of two dimensions with 5 points per axis, or the tolerance is not above 0.
    """
    if len(sweep.shape) != 2 or sweep.inside is not None:
        raise ValueError(f"the sweep has dimensions {', '.join(sweep.coords)}; interpolation is for full grids of two.")
    if not tolerance > 0:
        raise ValueError(f"tolerance is {tolerance}; it is a share of the range above 0, such as 0.01.")
    rows, columns = sweep.shape
    if min(rows, columns) <= CELLS:
        raise ValueError(f"the grid has {rows} x {columns} points; interpolation needs 5 per axis.")
    return rows, columns
