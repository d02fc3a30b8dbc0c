"""Evaluation of sweeps with the workers and the progress of a run."""

from __future__ import annotations

from typing import Any, TypedDict

import torch
import xarray as xr
from torch import Tensor

from drift.analyses.selected_samples import part_of
from drift.runs.run import Run
from drift.store import memory_budget
from landscape.model.batchnorm import Statistics, usual_statistics
from landscape.model.model import plain
from landscape.model.task import Split, Task
from landscape.results.netcdf_files import Partial
from landscape.results.progress import Progress, share
from landscape.surfaces.interpolated_surface import interpolated_surface
from landscape.surfaces.surface import surface
from landscape.sweep.evaluate import MEMORY, evaluate
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
    samples: int | None = None,
    folds: int = 0,
    part: int = 0,
    parts: int = 1,
) -> xr.Dataset:
    """Metrics on a sweep; points in `partial` are not evaluated again.

    Args:
        samples: At most so many samples of the split, selected at random, the same in every call; by default all. Of
            how many they are a part is stated in the attribute samples_of.
        task: A task in place of the run's own, such as one with further metrics.
        tolerance: Points may be interpolated, as in `landscape.interpolated_surface`; by default all are evaluated.
        folds: Parts of the samples for the sampling error, as in `landscape.surface`; by default none.
        part, parts: Number of this sweep among `parts` equal sweeps, for the progress.

    Raises:
        ValueError: If a tolerance is given beside a precision or folds.
    """
    if tolerance is not None and precision != "exact":
        raise ValueError(f"precision is {precision!r} and tolerance {tolerance}; give one of them, not both.")
    if tolerance is not None and folds:
        raise ValueError(f"folds is {folds} and tolerance {tolerance}; interpolated points have no sampling error.")
    task = task or run.task
    selected, stated = part_of(task, split, samples)
    known, checkpoint = (None, None) if partial is None else (partial.known(), partial.checkpoint)
    options: dict[str, Any] = {"split": selected, "metrics": metrics, "groups": groups, "statistics": statistics}
    options |= {"known": known, "checkpoint": checkpoint, **sharing(run, part, parts)}
    if tolerance is None:
        dataset = surface(task, sweep, precision=precision, folds=folds, **options)
    else:
        dataset = interpolated_surface(task, sweep, tolerance=tolerance, **options)
    return dataset.assign_attrs(stated)


def losses_and_errors(run: Run, models: Tensor, split: Split, coefficients: Tensor) -> dict[str, Tensor]:
    """Loss and error as `evaluate_models` returns them; NaN errors where the task has none, as in regression."""
    names = ("loss", *(("error",) if "error" in run.task.metrics else ()))
    values = evaluate_models(run, models, split, coefficients, metrics=names)
    return {"error": torch.full_like(values["loss"], torch.nan), **values}


def evaluate_models(
    run: Run,
    models: Tensor,
    split: Split,
    coefficients: Tensor | None = None,
    *,
    metrics: tuple[str, ...] = ("loss",),
    buffers: Tensor | None = None,
    groups: Tensor | None = None,
) -> dict[str, Tensor]:
    """Metrics of models (n, d), or of their combinations (P, n), with the workers of the run.

    Batch statistics are those of `buffers` (n, b); without them they are recomputed for every model that needs any,
    whatever the models carry, and other buffers are those of the task.
    """
    points = torch.eye(len(models), dtype=torch.float64) if coefficients is None else coefficients
    own = (usual_statistics(run.task) or "task") if buffers is None else None
    options: dict[str, Any] = {"split": split, "metrics": metrics, "buffers": buffers, "groups": groups}
    if models.device.type == "cpu":
        options["memory"] = min(MEMORY, memory_budget.budget())
    return evaluate(run.task, plain(models), points, statistics=own, workers=run.context.pool or 1, **options)
