"""Surfaces on fine grids from a few points: a smooth interpolant of the log loss, and its error at new points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Unpack

import numpy as np
import xarray as xr
from scipy.interpolate import RBFInterpolator

from landscape.model.task import Task
from landscape.surfaces.partial_grid import PartialGrid, Trial, lattice_trials, require_plane, with_errors
from landscape.sweep.evaluation import USUAL, Evaluation, EvaluationOptions
from landscape.sweep.grid import Sweep

KERNEL = "quintic"
"""Radial basis function, -r^5; `python -m benchmarks.interpolation` compares it with others."""

CELLS = 4
"""Cells per axis of the first lattice, which has 5 x 5 points."""


def interpolated_surface(
    task: Task,
    sweep: Sweep,
    *,
    tolerance: float = 0.01,
    budget: int | None = None,
    by: str = "loss",
    known: xr.Dataset | None = None,
    checkpoint: Callable[[xr.Dataset], None] | None = None,
    preview: Callable[[xr.Dataset], None] | None = None,
    evaluation: Evaluation = USUAL,
    **options: Unpack[EvaluationOptions],
) -> xr.Dataset:
    """Metrics on the whole grid of a 2-D sweep, evaluated on a coarse lattice of its points and interpolated elsewhere.

    The lattices are nested: 5 x 5 points, then these with the middles of their cells, then 9 x 9, and so on. After each
    the logarithm of the loss (a metric with values that are not positive: the metric itself) is interpolated by quintic
    radial basis functions. The points of the next lattice are predicted before they are evaluated. Where the largest
    difference, as a share of the range of the surface, is at most `tolerance`, 32 points drawn at random are predicted
    and evaluated too; where these are as close, the surface is complete, else the next lattice follows.

    The largest difference of both is the stated error. With 95 % confidence at most 9 % of the interpolated points are
    further off (0.91^32 = 0.05): a ridge between the lattice points is found by the random ones, a feature on a few
    points may be missed. Losses on planes through models are smooth, as averages over samples; on a surface with kinks,
    steps or noise the lattices go on until the stated error is met, to all points if need be.

    Source: radial basis functions: Wendland 2005, chapters 6 and 8.

    Args:
        task, sweep: As `surface` takes them; the sweep is a full grid of two dimensions.
        tolerance: Largest accepted error, as a share of the range of the metric `by` (of its logarithm).
        budget: Grid points evaluated at most; by default all.
        by: Metric that decides when to stop; with several groups or classes, the largest error counts.
        known: An earlier, perhaps partial result of the same call; values evaluated there are not computed again.
        checkpoint: Called with the partial dataset, as by `surface`.
        preview: Called with the whole dataset after each lattice: first after 25 points, with no error stated.
        evaluation, options: As `surface` takes them, but the precision. Progress counts the points requested so far.

    Returns:
        What `surface` returns, and `interpolated` over the grid (True where a value was not evaluated) and for each
        metric, from the points of the last lattice and the random ones before they were used:
        `<metric>_interpolation_error` (), root mean square difference at the random points (without them: at those of
        the lattice), and `<metric>_interpolation_worst` (), the largest of all, in the metric's unit, and
        `<metric>_interpolation_share` (), the largest difference as a share of the range. NaN where nothing is
        interpolated. The attributes `evaluated` and `random_points` count points, `converged` is 1 if the tolerance was
        met, and `<metric>_interpolated_in` is "log" or "linear".

    Raises:
        ValueError: If the sweep is no full 2-D grid, a value is infinite or NaN, or the budget is below the first
            lattice.
    """
    require_plane(sweep, tolerance, "range")
    if min(sweep.shape) <= CELLS:
        raise ValueError(f"the grid has {sweep.shape[0]} x {sweep.shape[1]} points; interpolation needs 5 per axis.")
    shape: tuple[int, int] = (sweep.shape[0], sweep.shape[1])
    first, *finer = lattices(shape)
    if budget is not None and first.sum() > budget:
        raise ValueError(f"the budget is {budget} points; the first lattice takes {first.sum()}: raise it to that.")
    evaluation = evaluation.but(**options).without("interpolated_surface", "precision")
    grid = PartialGrid(task, sweep, first, known, checkpoint=checkpoint, evaluation=evaluation)
    remembered = dict[int, _Surface]()

    def guess() -> _Surface:
        if (count := int(grid.requested.sum())) not in remembered:
            remembered.clear()
            remembered[count] = _guesses(grid)
        return remembered[count]

    ds, converged = _result(grid, guess(), []), bool(first.all())
    steps = lattice_trials(grid, finer, guess, lambda trial: _share(grid, by, trial, guess()) <= tolerance, budget)
    if preview is not None and not converged:
        preview(ds.assign_attrs(tolerance=tolerance, converged=0))
    for trials, converged in steps:
        ds = _result(grid, guess(), trials)
        if preview is not None and not converged:
            preview(ds.assign_attrs(tolerance=tolerance, converged=0))
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


_Surface = dict[str, np.ndarray]
"""Every metric on the whole grid, by name."""


def _guesses(grid: PartialGrid) -> _Surface:
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
        ValueError: If a value is infinite or NaN.
    """
    if requested.all():
        return values
    some = values[:, requested]
    present = ~np.isnan(some).all(axis=1)
    if not np.isfinite(some[present]).all() or not present.any():
        raise ValueError(
            "a value on the plane is infinite or NaN, so nothing smooth leads through it; evaluate every point."
        )
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


def _result(grid: PartialGrid, filled: _Surface, trials: Sequence[Trial]) -> xr.Dataset:
    """The whole surface, and the errors of the last trials."""
    ds, complete = grid.ds, bool(grid.requested.all())
    for name in grid.metrics:
        exact, tested = grid.values(name), [] if complete else trials
        share = max((_share(grid, name, trial, filled) for trial in tested), default=np.nan)
        ds = grid.filled(ds, name, filled[name])
        ds = with_errors(ds, name, [(trial.guess[name] - exact)[:, trial.fresh] for trial in tested], share)
        logarithmic = in_log(exact[:, grid.requested])
        ds = ds.assign_attrs({f"{name}_interpolated_in": "log" if logarithmic else "linear"})
    return grid.marked(ds, [] if complete else trials)


def _share(grid: PartialGrid, name: str, trial: Trial, filled: _Surface) -> float:
    """Largest difference of a metric in a trial, as a share of its range."""
    exact = grid.values(name)
    return share_of_range(trial.guess[name], exact, filled[name], trial.fresh, in_log(exact[:, grid.requested]))


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
    largest = np.abs(scale(guess[:, fresh]) - scale(exact[:, fresh])).max(axis=1, initial=0.0)
    ranges = np.ptp(scale(filled).reshape(len(filled), -1), axis=1)
    present = ~np.isnan(largest)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(largest[present] > 0, largest[present] / ranges[present], 0.0)
    return float(shares.max(initial=0.0))
