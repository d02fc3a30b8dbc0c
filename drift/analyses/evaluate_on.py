"""Evaluation of sweeps with the workers and the progress of a run."""

from typing import Any, Unpack

import torch
import xarray as xr
from torch import Tensor

from drift.analyses.selected_samples import stated_subset
from drift.runs.run import Run
from drift.store import memory_budget
from landscape.model.batchnorm import usual_statistics
from landscape.model.model import plain
from landscape.model.task import Split, Task
from landscape.results.netcdf_files import Partial
from landscape.surfaces.interpolated_surface import interpolated_surface
from landscape.surfaces.surface import surface
from landscape.sweep.evaluate import MEMORY, evaluate
from landscape.sweep.evaluation import Evaluation, EvaluationOptions
from landscape.sweep.grid import Sweep


def evaluation_of(run: Run, **options: Unpack[EvaluationOptions]) -> Evaluation:
    """An evaluation with the workers and the progress of the run, where `options` have no others."""
    return Evaluation(workers=run.context.pool or 1, progress=run.context.progress).but(**options)


def evaluate_on(
    run: Run,
    sweep: Sweep,
    partial: Partial | None = None,
    *,
    task: Task | None = None,
    tolerance: float | None = None,
    samples: int | None = None,
    folds: int = 0,
    **options: Unpack[EvaluationOptions],
) -> xr.Dataset:
    """Metrics on a sweep; points in `partial` are not evaluated again.

    Args:
        samples: Largest number of samples of the split, selected at random, the same in every call; by default all. Of
            how many they are a part is stated in the attribute samples_of.
        task: A task in place of the run's own, such as one with further metrics.
        tolerance: Points may be interpolated, as in `landscape.interpolated_surface`; by default all are evaluated.
        folds: Parts of the samples for the sampling error, as in `landscape.surface`; by default none.
        options: Fields of `landscape.Evaluation`; workers and progress are those of the run.

    Raises:
        ValueError: If a tolerance is given beside a precision or folds.
    """
    task = task or run.task
    evaluation = evaluation_of(run, **options)
    selected, stated = stated_subset(task, evaluation.split, samples)
    evaluation = evaluation.but(split=selected)
    if tolerance is not None and evaluation.precision != "exact":
        raise ValueError(f"precision is {evaluation.precision!r} and tolerance {tolerance}; give one of them.")
    if tolerance is not None and folds:
        raise ValueError(f"folds is {folds} and tolerance {tolerance}; interpolated points have no sampling error.")
    resumed: Any = {} if partial is None else {"known": partial.known(), "checkpoint": partial.checkpoint}
    if tolerance is None:
        dataset = surface(task, sweep, folds=folds, evaluation=evaluation, **resumed)
    else:
        dataset = interpolated_surface(task, sweep, tolerance=tolerance, evaluation=evaluation, **resumed)
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
    recomputed = (usual_statistics(run.task) or "task") if buffers is None else None
    memory = min(MEMORY, memory_budget.budget()) if models.device.type == "cpu" else None
    evaluation = evaluation_of(run, split=split, metrics=metrics, groups=groups, statistics=recomputed, memory=memory)
    return evaluate(run.task, plain(models), points, buffers=buffers, evaluation=evaluation.but(progress=None))
