"""Surfaces on fine grids from fewer points: evaluated where the loss bends, else interpolated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from torch import Tensor

from landscape.model.batchnorm import CALIBRATION, Statistics
from landscape.model.samples import Samples
from landscape.model.task import Split, Task
from landscape.results.progress import Progress
from landscape.surfaces.grid_cells import Cell, cell_points, difference, interpolate, quarters
from landscape.surfaces.partial_grid import PartialGrid, require_plane, with_errors
from landscape.sweep.grid import Sweep
from landscape.sweep.threads import PointPool

BATCH = 32
"""Cells refined per step; the order of refinement, and so the result, depends on it."""

SMOOTH = 4
"""A smooth loss is this much closer to its interpolation in cells of half the side."""


def adaptive_surface(
    task: Task,
    sweep: Sweep,
    *,
    tolerance: float = 0.02,
    budget: int | None = None,
    by: str = "loss",
    coarse: int = 5,
    held_out: int = 16,
    seed: int = 0,
    split: Split = "test",
    metrics: tuple[str, ...] | None = None,
    known: xr.Dataset | None = None,
    checkpoint: Callable[[xr.Dataset], None] | None = None,
    progress: Progress | None = None,
    groups: Tensor | None = None,
    statistics: Statistics | None = None,
    calibration: Samples | int = CALIBRATION,
    workers: int | PointPool = 1,
) -> xr.Dataset:
    """Metrics on the whole grid of a 2-D sweep, evaluated at some of its points and interpolated at the others.

    A coarse grid is evaluated first. Each of its cells is tested at the middles of its sides and at its centre, where
    the bilinear interpolation g of the corners is compared with the loss f: D = 2 |f - g| / (|f| + |g|). The four
    quarters of a cell are expected to have D / 4; where that is above the tolerance they are tested next, the worst
    first, until none is left or the budget is spent. All other points are interpolated in their smallest cell. Then
    `held_out` of these, selected at random, are evaluated too: the error of the interpolation there estimates its error
    at all interpolated points.

    Args:
        task, sweep: As `surface` takes them; the grid has 2^k m + 1 points in both dimensions, such as 33 or 41.
        tolerance: Largest accepted difference, as a fraction of the value.
        budget: Grid points evaluated at most, held-out ones included; by default all.
        by: Metric that decides where to refine; with several groups or classes, the largest difference counts.
        coarse: Least points of the coarse grid in each dimension.
        held_out: Points that estimate the error of the interpolation.
        seed: Of their selection.
        known: An earlier, perhaps partial result of the same call; values evaluated there are not computed again, and
            the result has the same bits as if it had never been stopped.
        checkpoint: Called with the partial dataset, as by `surface`.
        progress: As `surface` takes it; counts the points requested so far.
        split, metrics, groups, statistics, calibration, workers: As `surface` takes them.

    Returns:
        What `surface` returns, and `interpolate` over the grid (True where a value was not evaluated) and for each
        metric `<metric>_interpolation_error` () and `<metric>_interpolation_worst` (): root mean square and largest
        absolute difference at the held-out points, in the metric's unit; NaN where nothing is interpolated.
        The attributes `evaluated` and `held_out` count points, `unresolved` counts cells that the budget left
        above the tolerance.

    Raises:
        ValueError: If the sweep is no full 2-D grid that can be halved, or the budget is below the coarse grid.
    """
    require_plane(sweep, tolerance, "value")
    levels = _levels(sweep, coarse)
    step = 2**levels
    first = np.zeros(sweep.shape, dtype=bool)
    first[::step, ::step] = True
    limit = first.size if budget is None else budget - held_out
    if first.sum() > limit:
        raise ValueError(
            f"the budget is {budget} points; the coarse grid takes {first.sum()} and {held_out} are held out: "
            f"raise the budget to {first.sum() + held_out} or more."
        )

    options: dict[str, Any] = {"split": split, "metrics": metrics, "groups": groups, "statistics": statistics}
    options |= {"calibration": calibration, "workers": workers, "checkpoint": checkpoint, "progress": progress}
    grid = PartialGrid(task, sweep, first, known, **options)
    leaves, unresolved = _refine(grid, by, step, tolerance, limit)
    return _fill_and_judge(grid, leaves, held_out, seed).assign_attrs(tolerance=tolerance, unresolved=unresolved)


def _levels(sweep: Sweep, coarse: int) -> int:
    """How often cells of the coarse grid are halved."""
    cells = [points - 1 for points in sweep.shape]
    if any(count % 2 for count in cells):
        raise ValueError(
            f"the grid has {sweep.shape[0]} x {sweep.shape[1]} points; cells are halved, so that each dimension needs "
            "2^k m + 1 points, such as 33 or 41."
        )
    levels = 1
    while all(count % 2 ** (levels + 1) == 0 and count // 2 ** (levels + 1) + 1 >= coarse for count in cells):
        levels += 1
    return levels


def _refine(grid: PartialGrid, by: str, step: int, tolerance: float, limit: int) -> tuple[list[Cell], int]:
    """Test cells, worst parents first, and quarter them; returns all cells, and how many are above the tolerance."""
    rows, columns = grid.requested.shape
    waiting = [(np.inf, (i, j, step)) for i in range(0, rows - 1, step) for j in range(0, columns - 1, step)]
    leaves: list[Cell] = []
    while waiting:
        waiting.sort(key=lambda item: (-item[0], item[1]))
        requested, count = grid.requested.copy(), 0
        for _, cell in waiting[:BATCH]:
            enlarged = requested.copy()
            enlarged[cell_points(cell)] = True
            if enlarged.sum() > limit:
                break
            requested, count = enlarged, count + 1
        if count == 0:
            break
        grid.evaluate(requested)
        tested, waiting = [cell for _, cell in waiting[:count]], waiting[count:]
        values = grid.values(by)
        for cell in tested:
            excess = difference(values[(slice(None), *cell_points(cell))]) / SMOOTH
            parts = quarters(cell)
            if parts[0][2] == 1 or excess <= tolerance:
                leaves += parts
            else:
                waiting += [(excess, part) for part in parts]
    return leaves + [cell for _, cell in waiting], len(waiting)


def _fill_and_judge(grid: PartialGrid, leaves: list[Cell], held_out: int, seed: int) -> xr.Dataset:
    """The dataset with interpolated values, and their error estimated at held-out points."""
    evaluated = grid.requested.copy()
    guesses = {name: interpolate(grid.values(name), leaves, evaluated) for name in grid.metrics}
    free = np.flatnonzero(~evaluated)
    sampled = np.random.default_rng(seed).choice(free, min(held_out, len(free)), replace=False)
    judged = np.isin(np.arange(evaluated.size), sampled).reshape(evaluated.shape)
    grid.evaluate(grid.requested | judged)
    ds = grid.ds
    for name, guess in guesses.items():
        exact = grid.values(name)
        with np.errstate(invalid="ignore"):
            away = (guess - exact)[:, judged]
        ds = grid.filled(ds, name, guess)
        ds = with_errors(ds, name, away[~np.isnan(away)], "at held-out points")  # NaN: both infinite
    ds = grid.marked(ds)
    return ds.assign_attrs(evaluated=int(grid.requested.sum()), held_out=int(judged.sum()))
