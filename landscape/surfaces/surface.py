"""The loss on a sweep as a labelled dataset; the computation is resumable."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Unpack

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.geometry.through import as_sweep
from landscape.model.batchnorm import recalibrate_rows
from landscape.model.buffers import require_buffers
from landscape.model.copies import dtype_attrs
from landscape.model.held_values import digest
from landscape.model.losses import counted, group_weights
from landscape.model.task import Task, metric_units, split_name
from landscape.model.vectors import AnyModel
from landscape.results.stated import states_statistics
from landscape.surfaces.point_table import PointTable, is_missing
from landscape.surfaces.sampling_error import over_folds, sample_folds
from landscape.sweep.evaluate import evaluate
from landscape.sweep.evaluation import USUAL, Evaluation, EvaluationOptions
from landscape.sweep.grid import Sweep
from landscape.sweep.precision import evenly_spaced, precision_attrs, relative_difference

CHECKPOINT_SECONDS = 5.0
"""Least time between two checkpoints."""


@states_statistics
def surface(
    task: Task,
    sweep: Sweep | AnyModel | Sequence[AnyModel] | None = None,
    *models: AnyModel,
    known: xr.Dataset | None = None,
    checkpoint: Callable[[xr.Dataset], None] | None = None,
    folds: int = 0,
    evaluation: Evaluation = USUAL,
    **options: Unpack[EvaluationOptions],
) -> xr.Dataset:
    """Metrics at every grid point and mark of a sweep, or of the sweep that models define.

        landscape.surface(task, "a.pt", "b.pt", "c.pt")

    One model: random directions around it; two: their line; three: their plane; more: their principal components.

    Args:
        task: Defines the loss.
        sweep: A line, plane, simplex or slice; or a model, or a sequence of models.
        models: Further models: vectors (d,), modules, state dicts or paths of checkpoints.
        known: An earlier, perhaps partial result of the same call: its values are copied bit for bit, NaN are computed.
        checkpoint: Called with the partial dataset every few seconds.
        folds: Parts of the samples from which the sampling error follows, such as 20: each metric, such as loss, gets a
            variable loss_sampling_error (`landscape.surfaces.sampling_error`); by default none.
        evaluation, options: Samples, metrics, batch statistics, workers and more: a `landscape.Evaluation`, and fields
            of it by name. With one thread of torch the bits do not depend on workers. Groups become a dimension
            `group`. Progress counts points and marks, known ones as done. Batch statistics are stated in the
            attributes; by default they are recomputed between models (coefficients that sum to 1, or several models
            marked), and the model's own on slices around one. Where they are recomputed, marks that are models keep
            their own (`mark_statistics`), and differ by that from the points next to them. With precision "fast" the
            attributes state the largest relative difference in loss from exact values, over some points, or
            `precision_note`, why no layer changes.

    Returns:
        Dataset with each metric over the dimensions of the sweep, and over `mark` the marks' places
        (mark_alpha, ..) and exact values (mark_loss, ..), then over `group` where there are groups and over `class`
        for metrics with several values per sample. Cells outside the sweep are NaN.

    Raises:
        ValueError: If there is no model, `known` belongs to another sweep or task, models and task do not match, models
            lack their buffers, or folds are asked for in addition to groups.
    """
    if sweep is None:
        raise ValueError(
            "surface has a task and no model; give surface(task, a) for random directions around one, surface(task, a, "
            "b) for a line, surface(task, a, b, c) for a plane. Did you mean surface(task, task.theta)?"
        )
    sweep, evaluation = as_sweep(task, sweep, models), evaluation.but(**options)
    fold: Tensor | None = None
    if folds:
        if evaluation.groups is not None:
            raise ValueError(f"folds is {folds} and groups are given; the folds are groups, so give one of them.")
        if known is not None and "folds" in known.attrs:
            raise ValueError("the known surface is complete: it has its sampling error; give one of its checkpoints.")
        fold = sample_folds(len(task.split(evaluation.split)), folds)
        evaluation = evaluation.but(groups=fold)
    if evaluation.statistics is None:
        require_buffers(sweep.buffers, task.layout, "the sweep goes through models")
        evaluation = evaluation.between(task) if _between(sweep) else evaluation
    ds = empty_surface(task, sweep, evaluation)
    fixed = evaluation.calibration_of(task, sweep.buffers)
    samples = [task.split(evaluation.split), *([fixed] if fixed is not None and "calibration" in ds.attrs else [])]
    buffers = sweep.buffers if task.layout.buffers else None
    moved = digest(sweep.basis, buffers, sweep.origin, sweep.axes, sweep.mark_coefficients)
    ds.attrs.update(models=moved, task_digest=task.digest(*samples))
    if known is not None:
        _fill(ds, known)
    table = PointTable(sweep, ds)
    where, total = np.flatnonzero(table.missing), int(table.inside.sum())
    saved, done = time.monotonic(), total - len(where)
    report = evaluation.progress or (lambda done, total: None)

    def on_points(span: slice, values: dict[str, Tensor]) -> None:
        nonlocal saved, done
        for name, column in table.values.items():
            fresh = is_missing(column[where[span]])
            column[where[span][fresh]] = values[name].numpy()[fresh]
        done += span.stop - span.start
        report(done, total)
        if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
            checkpoint(table.surface())
            saved = time.monotonic()

    buffers, met = sweep.buffers, _single_models(sweep.coefficients) - _single_models(sweep.mark_coefficients)
    if buffers is not None and fixed is not None and met:  # grid points without a mark are no trained models
        buffers = recalibrate_rows(task, sweep.basis, buffers, met, fixed)
    report(done, total)
    values_at = functools.partial(evaluate, task, sweep.basis, buffers=buffers)
    evaluation = evaluation.but(progress=None)
    if len(where):
        values_at(table.rows[where], on_points=on_points, evaluation=evaluation)
    ds = table.surface()
    if evaluation.precision == "fast" and "loss" in table.values and "precision_note" not in ds.attrs:
        some = evenly_spaced(np.flatnonzero(table.inside))
        single = evaluation.but(metrics=("loss",), workers=1, precision="exact")
        exact = values_at(table.rows[some], evaluation=single)["loss"]
        error = relative_difference(torch.from_numpy(table.values["loss"][some]), exact)
        ds.attrs.update(precision_error=error, precision_points=len(some))
    if fold is None:
        return ds
    targets, measures = task.split(evaluation.split).targets, task.measures(evaluation.metrics)
    return over_folds(ds, {name: group_weights(measure, targets, fold).numpy() for name, measure in measures.items()})


def empty_surface(task: Task, sweep: Sweep, evaluation: Evaluation) -> xr.Dataset:
    """The labelled surface with all values missing; its attributes state how the values are evaluated."""
    ds = xr.Dataset(coords={name: (name, values) for name, values in sweep.coords.items()})
    ds = ds.assign_coords(mark=("mark", np.array([mark.name for mark in sweep.marks], dtype=np.str_)))
    unit = str(sweep.attrs.get("unit", "1"))
    for index, name in enumerate(sweep.coords):
        ds[name].attrs.update(long_name=name, units=unit)
        ds[f"mark_{name}"] = ("mark", np.array([mark.at[index] for mark in sweep.marks], dtype=np.float64))
        ds[f"mark_{name}"].attrs.update(long_name=f"{name} of the mark", units=unit)
    for name, sizes in _extra_dims(task, sweep, evaluation).items():
        units = metric_units(task, name)
        dims, shape = (*sizes,), (*sizes.values(),)
        about = {"long_name": name, "units": units}
        ds[name] = ((*sweep.coords, *dims), np.full((*sweep.shape, *shape), np.nan), about)
        at_mark = {"long_name": f"{name} at the mark", "units": units}
        ds[f"mark_{name}"] = (("mark", *dims), np.full((len(sweep.marks), *shape), np.nan), at_mark)
    samples = task.split(evaluation.split)
    ds.attrs.update({**sweep.attrs, **dtype_attrs(task.model), **_statistics(task, sweep, evaluation)})
    ds.attrs.update(split=split_name(evaluation.split), samples=counted(task.per_sample, samples.targets))
    if evaluation.groups is not None:  # a result is not resumed with other groups
        ds.attrs.update(groups=digest(evaluation.groups.long()))
    return ds.assign_attrs(precision_attrs(evaluation.precision, task, sweep.basis, samples[:2]))


def _extra_dims(task: Task, sweep: Sweep, evaluation: Evaluation) -> dict[str, dict[str, int]]:
    """Sizes of the dimensions that each metric has beyond those of the sweep, from two samples at one model."""
    probe, groups = task.split(evaluation.split)[:2], evaluation.groups
    if not len(probe):
        raise ValueError("the split has no samples; a mean needs at least one.")
    outputs = task.outputs(sweep.basis[0].detach(), probe, buffers=task.buffers)  # whose shape counts alone
    extra = {"group": int(groups.max()) + 1} if groups is not None and len(groups) else {}
    sizes = {}
    for name, measure in task.measures(evaluation.metrics).items():
        shape = measure(outputs, probe.targets.to(outputs.device)).shape[1:]
        sizes[name] = extra | ({"class": shape[0]} if shape else {})
    return sizes


def _between(sweep: Sweep) -> bool:
    """Whether the points lie between models: averages of the basis, or on a plane that several models span."""
    rows = sweep.coefficients[np.isfinite(sweep.coefficients).all(1)]
    averages = len(sweep.basis) > 1 and np.allclose(rows.sum(1), 1)
    return averages or len(_single_models(sweep.mark_coefficients)) > 1


def _single_models(rows: np.ndarray) -> set[int]:
    """Rows of the basis that are points themselves, by the coefficients (P, n) of the points."""
    single = (np.count_nonzero(rows, axis=1) == 1) & (rows.max(axis=1) == 1)
    return set(rows[single].argmax(axis=1).tolist())


def _statistics(task: Task, sweep: Sweep, evaluation: Evaluation) -> dict[str, str | int]:
    """Attributes that state the batch statistics of the points, and of marked models where these have others."""
    attrs = evaluation.attrs(task, sweep.buffers)
    if sweep.buffers is None or not attrs:
        return attrs
    if attrs["statistics"] == "averaged" and not _between(sweep):
        return {**attrs, "statistics": "own"}
    marked = attrs["statistics"] == "recomputed" and _single_models(sweep.mark_coefficients)
    return {**attrs, "mark_statistics": "own"} if marked else attrs


def _fill(ds: xr.Dataset, known: xr.Dataset) -> None:
    """Copy known values into `ds`, after checking that they belong to the same sweep."""
    for name in ds.coords:
        if name not in known.coords or not np.array_equal(known[name].values, ds[name].values):
            raise ValueError(f"the known surface has other {name} coordinates than this sweep; start without it.")
    for key in ("split", "samples", "models", "statistics", "calibration", "groups", "precision", "task_digest"):
        if (before := known.attrs.get(key)) != (stated := ds.attrs.get(key)):
            text = "the digest of samples, loss, metrics and frozen tensors" if key == "task_digest" else key
            raise ValueError(f"the known surface has {text} = {before}, this sweep has {stated}; start without it.")
    for name in ds.data_vars:
        if name in known:
            ds[name].values[:] = known[name].values
