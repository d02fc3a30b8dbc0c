"""Evaluation of sweeps with the workers and the progress of a run."""

from __future__ import annotations

import functools
from typing import TypedDict

import xarray as xr
from torch import Tensor

from drift.runs.run import Run
from landscape.model.batchnorm import Statistics
from landscape.model.task import Split, Task
from landscape.results.progress import Progress, share
from landscape.results.zarr_files import Partial
from landscape.surfaces.adaptive_grid import adaptive_surface
from landscape.surfaces.surface import surface
from landscape.sweep.grid import Sweep
from landscape.sweep.precision import Precision
from landscape.sweep.threads import PointPool


class Sharing(TypedDict):
    """Arguments of every function of `landscape` that evaluates many points."""

    workers: int | PointPool
    progress: Progress | None


def sharing(run: Run, part: int = 0, parts: int = 1) -> Sharing:
    """Workers and progress of the run; progress is that of sweep `part` (0, 1, ..) of `parts` equal sweeps."""
    return {"workers": run.context.pool or 1, "progress": share(run.context.progress, part, parts)}


def evaluate_on(
    run: Run,
    sweep: Sweep,
    split: Split,
    partial: Partial | None = None,
    *,
    task: Task | None = None,
    tolerance: float | None = None,
    statistics: Statistics | None = None,
    precision: Precision = "exact",
    metrics: tuple[str, ...] | None = None,
    groups: Tensor | None = None,
    part: int = 0,
    parts: int = 1,
) -> xr.Dataset:
    """Metrics on a sweep; points in `partial` are not evaluated again.

    Args:
        task: A task in place of the run's own, such as one with further metrics.
        tolerance: Points may be interpolated to this tolerance, as `landscape.adaptive_surface` does.
        part, parts: Number of this sweep among `parts` equal sweeps, for the progress.

    Raises:
        ValueError: If both a tolerance and a precision are given.
    """
    if tolerance is not None and precision != "exact":
        raise ValueError(f"precision is {precision!r} and tolerance {tolerance}; give one of them, not both.")
    task, shared = task or run.task, sharing(run, part, parts)
    known, checkpoint = (None, None) if partial is None else (partial.known(), partial.checkpoint)
    evaluate = (
        functools.partial(surface, precision=precision)
        if tolerance is None
        else functools.partial(adaptive_surface, tolerance=tolerance)
    )
    return evaluate(
        task,
        sweep,
        split=split,
        metrics=metrics,
        known=known,
        checkpoint=checkpoint,
        groups=groups,
        statistics=statistics,
        **shared,
    )
