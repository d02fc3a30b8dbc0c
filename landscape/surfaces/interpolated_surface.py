"""Surfaces on fine grids from a few points: a smooth interpolant of the log loss, and its error at new points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Unpack

import numpy as np
import xarray as xr

from landscape.model.task import Task
from landscape.surfaces.interpolation import filled
from landscape.surfaces.point_table import metrics_of
from landscape.surfaces.refinement import Refinement, require_plane
from landscape.surfaces.surface import surface
from landscape.sweep.evaluation import USUAL, Evaluation, EvaluationOptions
from landscape.sweep.grid import Sweep


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
    steps or noise the lattices continue until the stated error is met, to all points if need be. Fractions, such as
    error rates, stay between 0 and 1.

    Source: radial basis functions: Wendland 2005, chapters 6 and 8.

    Args:
        task, sweep: As `surface` takes them; the sweep is a full grid of two dimensions.
        tolerance: Largest accepted error, as a share of the range of the metric `by` (of its logarithm).
        budget: Grid points evaluated at most; by default all.
        by: Metric that decides when to stop, and the one that `converged` is about; with several groups or classes, the
            largest error counts.
        known: An earlier, perhaps partial result of the same call; values evaluated there are not computed again.
        checkpoint: Called with the partial dataset, as by `surface`.
        preview: Called with the whole dataset after each lattice: first after 25 points, with no error stated.
        evaluation, options: As `surface` takes them, but the precision. Progress counts the points requested so far.

    Returns:
        What `surface` returns, and `interpolated` over the grid (True where a value was not evaluated) and for each
        metric, from the points of the last lattice and the random ones before they were used:
        `<metric>_interpolation_error`, root mean square difference at the random points (without them: at those of
        the lattice), and `<metric>_interpolation_worst`, the largest of all, in the metric's unit, and
        `<metric>_interpolation_share`, the largest difference as a share of the range: () each, or over the groups or
        classes of the metric. NaN where nothing is interpolated. The attributes `evaluated` and `random_points` count
        points, `converged` is 1 if the metric `by`, which `tolerance_of` names, met the tolerance, and
        `<metric>_interpolated_in` is "log" or "linear". Other metrics, such as the error rate, may be further off:
        their share says how far.

    Raises:
        ValueError: If the sweep is not a full 2-D grid, a value is infinite or NaN, or the budget is below the first
            lattice.
    """
    refinement = Refinement(require_plane(sweep, tolerance), tolerance, budget)
    if budget is not None and (first := refinement.requested.sum()) > budget:
        raise ValueError(f"the budget is {budget} points; the first lattice takes {first}: raise it to that.")
    evaluation = evaluation.but(**options).without("interpolated_surface", "precision")
    if by not in (metrics := task.measures(evaluation.metrics)):
        raise ValueError(f"no metric named {by!r} to refine by; evaluated: {', '.join(metrics)}.")
    known = None if known is None else _without_interpolated(known)
    while True:
        requested = replace(sweep, inside=refinement.requested)
        known = surface(task, requested, known=known, checkpoint=checkpoint, evaluation=evaluation)
        ds = filled(known, refinement.requested, refinement.trials)
        share = float(np.nanmax(ds[f"{by}_interpolation_share"].values, initial=0.0))
        further = refinement.advance(share)
        ds = ds.assign_attrs(tolerance=tolerance, tolerance_of=by, converged=int(refinement.converged))
        if not further:
            return ds
        if preview is not None:
            preview(ds)


def _without_interpolated(known: xr.Dataset) -> xr.Dataset:
    """An earlier result with NaN where it was interpolated."""
    if "interpolated" not in known:
        return known
    plain = known.drop_vars("interpolated")
    return plain.assign({name: plain[name].where(~known["interpolated"]) for name in metrics_of(plain)})
