"""Surfaces on fine grids from a few points: a smooth interpolant of the log loss, and its error at new points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import xarray as xr
from scipy.interpolate import RBFInterpolator
from torch import Tensor

from landscape.model.batchnorm import CALIBRATION, Statistics
from landscape.model.samples import Samples
from landscape.model.task import Split, Task
from landscape.results.progress import Progress
from landscape.surfaces.partial_grid import PartialGrid, require_plane, with_errors
from landscape.sweep.grid import Sweep
from landscape.sweep.threads import PointPool

KERNEL = "quintic"
"""Radial basis function, -r^5; `python -m benchmarks.interpolation` compares it with others."""

CELLS = 4
"""Cells per axis of the first lattice, which has 5 x 5 points."""

TESTED = 32
"""Points that a stated error rests on, at least."""


def interpolated_surface(
    task: Task,
    sweep: Sweep,
    *,
    tolerance: float = 0.01,
    budget: int | None = None,
    by: str = "loss",
    split: Split = "test",
    metrics: tuple[str, ...] | None = None,
    known: xr.Dataset | None = None,
    checkpoint: Callable[[xr.Dataset], None] | None = None,
    preview: Callable[[xr.Dataset], None] | None = None,
    progress: Progress | None = None,
    groups: Tensor | None = None,
    statistics: Statistics | None = None,
    calibration: Samples | int = CALIBRATION,
    workers: int | PointPool = 1,
) -> xr.Dataset:
    """Metrics on the whole grid of a 2-D sweep, evaluated on a coarse lattice of its points and interpolated elsewhere.

    The lattices are nested: 5 x 5 points, then these with the middles of their cells, then 9 x 9, and so on. After each
    the logarithm of the loss (a metric with values that are not positive: the metric itself) is interpolated by quintic
    radial basis functions. The points of the next lattice are predicted before they are evaluated: the largest
    difference, as a share of the range of the surface, is the stated error. The last lattice is the first one, of 81
    points or more, on which it is at most `tolerance`; since the result also uses these points, its own error is
    usually smaller.

    Losses on planes through models are smooth, as averages over samples. So far fewer points are needed than with
    `adaptive_surface`, whose cells are linear, and which suits a loss with sharp edges. As on any grid, a feature that
    lies between the points of all lattices is missed.

    Source: radial basis functions: Wendland 2005, chapters 6 and 8.

    Args:
        task, sweep: As `surface` takes them; the sweep is a full grid of two dimensions.
        tolerance: Largest accepted error, as a share of the range of the metric `by` (of its logarithm).
        budget: Grid points evaluated at most; by default all.
        by: Metric that decides when to stop; with several groups or classes, the largest error counts.
        known: An earlier, perhaps partial result of the same call; values evaluated there are not computed again.
        checkpoint: Called with the partial dataset, as by `surface`.
        preview: Called with the whole dataset after each lattice: first after 25 points, with no error stated.
        progress: As `surface` takes it; counts the points requested so far.
        split, metrics, groups, statistics, calibration, workers: As `surface` takes them.

    Returns:
        What `surface` returns, and `interpolated` over the grid (True where a value was not evaluated) and for each
        metric, from the points of the last lattice before they were used: `<metric>_interpolation_error` () and
        `<metric>_interpolation_worst` (), root mean square and largest absolute difference in the metric's unit, and
        `<metric>_interpolation_share` (), the largest difference as a share of the range. NaN where nothing is
        interpolated. The attributes `evaluated` counts points, `converged` is 1 if the tolerance was met, and
        `<metric>_interpolated_in` is "log" or "linear".

    Raises:
        ValueError: If the sweep is no full 2-D grid, a value is infinite, or the budget is below the first lattice.
    """
    require_plane(sweep, tolerance, "range")
    if min(sweep.shape) <= CELLS:
        raise ValueError(f"the grid has {sweep.shape[0]} x {sweep.shape[1]} points; interpolation needs 5 per axis.")
    shape: tuple[int, int] = (sweep.shape[0], sweep.shape[1])
    first, *finer = lattices(shape)
    if budget is not None and first.sum() > budget:
        raise ValueError(f"the budget is {budget} points; the first lattice takes {first.sum()}: raise it to that.")
    options: dict[str, Any] = {"split": split, "metrics": metrics, "groups": groups, "statistics": statistics}
    options |= {"calibration": calibration, "workers": workers, "checkpoint": checkpoint, "progress": progress}
    grid = PartialGrid(task, sweep, first, known, **options)
    ds, converged = _result(grid, {}, first), bool(first.all())
    for mask in finer:
        if preview is not None:
            preview(ds.assign_attrs(tolerance=tolerance, converged=0))
        if budget is not None and mask.sum() > budget:
            break
        guesses, fresh = _guesses(grid), mask & ~grid.requested
        grid.evaluate(mask)
        ds = _result(grid, guesses, fresh)
        enough = int(fresh.sum()) >= TESTED and float(ds[f"{by}_interpolation_share"]) <= tolerance
        converged = bool(mask.all()) or enough
        if converged:
            break
    return ds.assign_attrs(tolerance=tolerance, converged=int(converged))


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


def _guesses(grid: PartialGrid) -> dict[str, np.ndarray]:
    """Every metric on the whole grid (all other dimensions, *grid), from the points that are evaluated."""
    return {name: interpolate(grid.values(name), grid.requested) for name in grid.metrics}


def interpolate(
    values: np.ndarray, requested: np.ndarray, kernel: str = KERNEL, *, logarithmic: bool | None = None
) -> np.ndarray:
    """Values (k, *grid) from those at the requested points.

    Args:
        values: NaN in all requested points of a group without samples; others are not read.
        requested: Mask over the grid.
        kernel: Radial basis function, as `scipy.interpolate.RBFInterpolator` names them.
        logarithmic: Whether logarithms are interpolated; by default where all requested values are positive.

    Raises:
        ValueError: If a value is infinite.
    """
    some = values[:, requested]
    if np.isinf(some).any():
        raise ValueError("a value on the plane is infinite, so nothing smooth leads through it; evaluate every point.")
    present = ~np.isnan(some).any(axis=1)
    logarithmic = in_log(some) if logarithmic is None else logarithmic
    known = np.log(some[present]) if logarithmic else some[present]
    places = np.stack(np.meshgrid(*(np.linspace(-1, 1, count) for count in requested.shape), indexing="ij"), -1)
    middle = known.mean(axis=1, keepdims=True)
    smooth = RBFInterpolator(places[requested], (known - middle).T, kernel=kernel)(places.reshape(-1, 2)).T + middle
    full = np.full(values.shape, np.nan)
    full[present] = (np.exp(smooth) if logarithmic else smooth).reshape(-1, *requested.shape)
    return full


def in_log(values: np.ndarray) -> bool:
    """Whether a metric is interpolated by its logarithm: where all of its values are positive, NaN apart."""
    return bool((values[~np.isnan(values)] > 0).all())


def _result(grid: PartialGrid, guesses: dict[str, np.ndarray], fresh: np.ndarray) -> xr.Dataset:
    """The whole surface, and the errors of guesses at the fresh points, made without them."""
    ds, filled = grid.ds, _guesses(grid)
    nothing = bool(grid.requested.all())
    for name in grid.metrics:
        exact, logarithmic = grid.values(name), in_log(grid.values(name)[:, grid.requested])
        ds = grid.filled(ds, name, filled[name])
        away, share = np.zeros((len(exact), 0)), np.nan
        if name in guesses and not nothing:
            away = (guesses[name] - exact)[:, fresh]
            share = share_of_range(guesses[name], exact, filled[name], fresh, logarithmic)
        ds = with_errors(ds, name, away[~np.isnan(away)], "at the last lattice's points, before they were used")
        about = {"long_name": f"largest error of interpolated {name}, as a share of its range", "units": "1"}
        ds[f"{name}_interpolation_share"] = ((), share, about)
        ds = ds.assign_attrs({f"{name}_interpolated_in": "log" if logarithmic else "linear"})
    return grid.marked(ds).assign_attrs(evaluated=int(grid.requested.sum()))


def share_of_range(
    guess: np.ndarray, exact: np.ndarray, filled: np.ndarray, fresh: np.ndarray, logarithmic: bool
) -> float:
    """Largest difference at the fresh points over the range of the surface, of logarithms where asked for.

    Args:
        guess: Values (k, *grid) that were predicted.
        exact: Those that were evaluated then, read at the fresh points only.
        filled: The surface, shape (k, *grid).
        fresh: Mask over the grid.
        logarithmic: As `in_log` says.
    """
    scale = np.log if logarithmic else np.asarray
    largest = np.abs(scale(guess[:, fresh]) - scale(exact[:, fresh])).max(axis=1)
    ranges = np.ptp(scale(filled).reshape(len(filled), -1), axis=1)
    present = ~np.isnan(largest)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(largest[present] > 0, largest[present] / ranges[present], 0.0)
    return float(shares.max(initial=0.0))
