"""The one door through which sweeps over a run go, so that its crew shares their points and its progress is shown."""

from __future__ import annotations

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
    """The run's crew and progress; progress is that of part `part` (0, 1, ..) of `parts` equal sweeps."""
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
    """Metrics on a sweep, as far as `partial` knows them already; interpolated to a tolerance where given.

    Args:
        task: In place of the run's own, for further metrics.
        part, parts: Which of how many equal sweeps this is, for the progress.

    Raises:
        ValueError: If both a tolerance and a precision are given.
    """
    known, checkpoint = (None, None) if partial is None else (partial.known(), partial.checkpoint)
    if tolerance is not None and precision != "exact":
        raise ValueError(f"precision is {precision!r} and tolerance {tolerance}; give one of them, not both.")
    task, shared = task or run.task, sharing(run, part, parts)
    if tolerance is not None:
        return adaptive_surface(
            task,
            sweep,
            tolerance=tolerance,
            split=split,
            metrics=metrics,
            known=known,
            checkpoint=checkpoint,
            groups=groups,
            statistics=statistics,
            **shared,
        )
    return surface(
        task,
        sweep,
        split=split,
        metrics=metrics,
        known=known,
        checkpoint=checkpoint,
        groups=groups,
        statistics=statistics,
        precision=precision,
        **shared,
    )
