"""The loss on a sweep as a labelled dataset; the computation is resumable."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.geometry.through import as_sweep
from landscape.model.batchnorm import (
    CALIBRATION,
    Statistics,
    calibration_of,
    recalibrate_rows,
    statistics_attrs,
    usual_statistics,
)
from landscape.model.buffers import require_buffers
from landscape.model.copies import dtype_attrs
from landscape.model.held import digest
from landscape.model.losses import counted, group_weights
from landscape.model.samples import Samples
from landscape.model.task import Split, Task, metric_units, split_name
from landscape.model.vectors import AnyModel
from landscape.results.progress import Progress
from landscape.surfaces.sampling_error import over_folds, sample_folds
from landscape.sweep.evaluate import evaluate, sweep_work
from landscape.sweep.grid import Sweep
from landscape.sweep.measured_plan import sweep_plan
from landscape.sweep.precision import (
    Precision,
    check_precision,
    evenly_spaced,
    precision_attrs,
    relative_difference,
)
from landscape.sweep.sweep_plan import DEFAULT, SweepPlan
from landscape.sweep.threads import PointPool

CHECKPOINT_SECONDS = 5.0
"""Least time between two checkpoints."""


def surface(
    task: Task,
    sweep: Sweep | AnyModel | Sequence[AnyModel] | None = None,
    *models: AnyModel,
    split: Split = "test",
    metrics: tuple[str, ...] | None = None,
    known: xr.Dataset | None = None,
    checkpoint: Callable[[xr.Dataset], None] | None = None,
    progress: Progress | None = None,
    groups: Tensor | None = None,
    folds: int = 0,
    statistics: Statistics | None = None,
    calibration: Samples | int = CALIBRATION,
    workers: int | PointPool = 1,
    precision: Precision = "exact",
) -> xr.Dataset:
    """Metrics at every grid point and mark of a sweep, or of the sweep that models define.

        landscape.surface(task, "a.pt", "b.pt", "c.pt")

    One model: random directions around it; two: their line; three: their plane; more: their principal components.

    Args:
        task: Defines the loss.
        sweep: A line, plane, simplex or slice; or a model, or a sequence of models.
        models: Further models: vectors (d,), modules, state dicts or paths of checkpoints.
        split: Samples that the metrics are averaged over.
        metrics: "loss" and names of the task's metrics; by default all.
        known: An earlier, perhaps partial result of the same call: its values are copied bit for bit, NaN are computed,
            with the plan of the known ones.
        checkpoint: Called with the partial dataset every few seconds.
        progress: Called with (points done, all points) of grid and marks; known points count as done.
        groups: Group 0, 1, .. of each sample: metrics get a dimension `group`, from the same forward passes.
        folds: Parts of the samples from which the sampling error follows, such as 20: each metric, such as loss, gets a
            variable loss_sampling_error (`landscape.surfaces.sampling_error`); by default none.
        statistics, calibration: Of batch normalisation, as in `landscape.sweep.evaluate.evaluate`; stated in the
            attributes. By default recomputed between models (coefficients that sum to 1, or several models marked),
            the model's own on slices around one. Where they are recomputed, marks that are models keep their own
            (`mark_statistics`), and differ by that from the points beside them.
        workers: Threads, or a pool of processes, that share the points; the bits of the values do not change.
        precision: "fast" for products in bfloat16 (`landscape.sweep.precision`); the largest relative difference in
            loss from exact values, over some points, is then stated in the attributes, and so is a processor without
            such products.

    Returns:
        Dataset with each metric over the dimensions of the sweep, and over `mark` the marks' places
        (mark_alpha, ..) and exact values (mark_loss, ..), then over `group` where there are groups and over `class`
        for metrics with several values per sample. Cells outside the sweep are NaN. The attribute `plan` says how
        the passes were carried out (`landscape.sweep.measured_plan`).

    Raises:
        ValueError: If there is no model, `known` is of another sweep or task, models and task do not match, models lack
            their buffers, or folds are asked for beside groups.
    """
    if sweep is None:
        raise ValueError(
            "surface has a task and no model; give surface(task, a) for random directions around one, surface(task, a, "
            "b) for a line, surface(task, a, b, c) for a plane. Did you mean surface(task, task.theta)?"
        )
    sweep = as_sweep(task, sweep, models)
    fold: Tensor | None = None
    if folds:
        if groups is not None:
            raise ValueError(f"folds is {folds} and groups are given; the folds are groups, so give one of them.")
        if known is not None and "folds" in known.attrs:
            raise ValueError("the known surface is complete: it has its sampling error; give one of its checkpoints.")
        groups = fold = sample_folds(len(task.split(split)), folds)
    metrics = tuple(task.measures(metrics))
    if statistics is None:
        require_buffers(sweep.buffers, task.layout, "the sweep goes through models")
        statistics = usual_statistics(task) if _between(sweep) else None
    further = _extra_dims(task, sweep, split, metrics, groups)
    ds = _empty(task, sweep, split, metrics, further)
    ds.attrs.update(_statistics(task, sweep, split, statistics, calibration))
    fixed = [calibration_of(task, split, calibration)] if "calibration" in ds.attrs else []
    ds.attrs.update(task_digest=task.digest(task.split(split), *fixed))
    if groups is not None:  # a result is not resumed with other groups
        ds.attrs.update(groups=digest(groups.long()))
    ds.attrs.update(precision_attrs(check_precision(precision), sweep.basis.device))
    if known is not None:
        _fill(ds, known)
    plan = _plan(task, sweep, split, known, precision)
    ds.attrs.update(plan=plan.text)
    marks = len(sweep.marks)
    rows = np.concatenate([sweep.mark_coefficients, sweep.coefficients])
    values = {
        name: np.concatenate([ds[f"mark_{name}"].values, ds[name].values.reshape(-1, *further[name].values())])
        for name in metrics
    }
    inside = np.isfinite(rows).all(1)
    where = np.flatnonzero(inside & np.any([_missing(column) for column in values.values()], axis=0))
    total = int(inside.sum())
    saved, done = time.monotonic(), total - len(where)
    report = progress or (lambda done, total: None)

    def write() -> None:
        for name, column in values.items():
            ds[f"mark_{name}"].values[:] = column[:marks]
            ds[name].values[:] = column[marks:].reshape(ds[name].shape)

    def on_points(part: slice, values_by_metric: dict[str, Tensor]) -> None:
        nonlocal saved, done
        for name, column in values.items():
            fresh = _missing(column[where[part]])
            column[where[part][fresh]] = values_by_metric[name].numpy()[fresh]
        done += part.stop - part.start
        report(done, total)
        if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
            write()
            checkpoint(ds.copy(deep=True))
            saved = time.monotonic()

    buffers, met = sweep.buffers, _single_models(sweep.coefficients) - _single_models(sweep.mark_coefficients)
    if buffers is not None and statistics == "recomputed" and met:  # grid points without a mark are no trained models
        buffers = recalibrate_rows(task, sweep.basis, buffers, met, calibration_of(task, split, calibration))
    report(done, total)
    values_at = functools.partial(
        evaluate,
        task,
        sweep.basis,
        split=split,
        buffers=buffers,
        groups=groups,
        statistics=statistics,
        calibration=calibration,
        workers=workers,
        plan=plan,
    )
    if len(where):
        values_at(torch.from_numpy(rows[where]), metrics=metrics, on_points=on_points, precision=precision)
    write()
    if precision == "fast" and "loss" in metrics:
        some = evenly_spaced(np.flatnonzero(inside))
        exact = values_at(torch.from_numpy(rows[some]), metrics=("loss",), workers=1)["loss"]
        error = relative_difference(torch.from_numpy(values["loss"][some]), exact)
        ds.attrs.update(precision_error=error, precision_points=len(some))
    if fold is None:
        return ds
    targets, measures = task.split(split).targets, task.measures(metrics)
    return over_folds(ds, {name: group_weights(measure, targets, fold).numpy() for name, measure in measures.items()})


def _plan(task: Task, sweep: Sweep, split: Split, known: xr.Dataset | None, precision: Precision) -> SweepPlan:
    """The plan that a known part was computed with (by default those of earlier versions), else the measured one."""
    if known is not None:
        return SweepPlan.parse(known.attrs.get("plan", DEFAULT.text))
    rows = sweep.coefficients
    work = sweep_work(task, sweep.basis, split=split, buffers=sweep.buffers, precision=precision)
    return sweep_plan(work, torch.from_numpy(rows[np.isfinite(rows).all(1)]))


def _empty(
    task: Task, sweep: Sweep, split: Split, metrics: tuple[str, ...], further: dict[str, dict[str, int]]
) -> xr.Dataset:
    """The labelled dataset with all values missing."""
    ds = xr.Dataset(coords={name: (name, values) for name, values in sweep.coords.items()})
    ds = ds.assign_coords(mark=("mark", np.array([mark.name for mark in sweep.marks], dtype=np.str_)))
    unit = str(sweep.attrs.get("unit", "1"))
    for index, name in enumerate(sweep.coords):
        ds[name].attrs.update(long_name=name, units=unit)
        ds[f"mark_{name}"] = ("mark", np.array([mark.at[index] for mark in sweep.marks], dtype=np.float64))
        ds[f"mark_{name}"].attrs.update(long_name=f"{name} of the mark", units=unit)
    for name in metrics:
        units = metric_units(task, name)
        dims, shape = (*further[name],), (*further[name].values(),)
        about = {"long_name": name, "units": units}
        ds[name] = ((*sweep.coords, *dims), np.full((*sweep.shape, *shape), np.nan), about)
        at_mark = {"long_name": f"{name} at the mark", "units": units}
        ds[f"mark_{name}"] = (("mark", *dims), np.full((len(sweep.marks), *shape), np.nan), at_mark)
    samples, buffers = task.split(split), sweep.buffers if task.layout.buffers else None
    ds.attrs.update({**sweep.attrs, **dtype_attrs(task.model)})
    ds.attrs.update(
        split=split_name(split),
        samples=counted(task.per_sample, samples.targets),
        models=digest(sweep.basis, buffers, sweep.origin, sweep.axes, sweep.mark_coefficients),
    )
    return ds


def _extra_dims(
    task: Task, sweep: Sweep, split: Split, metrics: tuple[str, ...], groups: Tensor | None
) -> dict[str, dict[str, int]]:
    """Sizes of the dimensions that each metric has beyond those of the sweep, from two samples at one model."""
    probe = task.split(split)[:2]
    if not len(probe):
        raise ValueError("the split has no samples; a mean needs at least one.")
    outputs = task.outputs(sweep.basis[0].detach(), probe, buffers=task.buffers)  # whose shape counts alone
    own = {"group": int(groups.max()) + 1} if groups is not None and len(groups) else {}
    sizes = {}
    for name, measure in task.measures(metrics).items():
        shape = measure(outputs, probe.targets.to(outputs.device)).shape[1:]
        sizes[name] = own | ({"class": shape[0]} if shape else {})
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


def _statistics(
    task: Task, sweep: Sweep, split: Split, statistics: Statistics | None, calibration: Samples | int
) -> dict[str, str | int]:
    """Attributes that state the batch statistics of the points, and of marked models where these have others."""
    attrs = statistics_attrs(task, split, statistics, sweep.buffers, calibration)
    if sweep.buffers is None or not attrs:
        return attrs
    if attrs["statistics"] == "averaged" and not _between(sweep):
        return {**attrs, "statistics": "own"}
    marked = attrs["statistics"] == "recomputed" and _single_models(sweep.mark_coefficients)
    return {**attrs, "mark_statistics": "own"} if marked else attrs


def _missing(column: np.ndarray) -> np.ndarray:
    """Whether all values of a point (first axis) are missing; groups without samples remain NaN."""
    return np.isnan(column).reshape(len(column), -1).all(1)


def _fill(ds: xr.Dataset, known: xr.Dataset) -> None:
    """Copy known values into `ds`, after checking that they belong to the same sweep."""
    for name in ds.coords:
        if name not in known.coords or not np.array_equal(known[name].values, ds[name].values):
            raise ValueError(f"the known surface has other {name} coordinates than this sweep; start it anew.")
    for key in ("split", "samples", "models", "statistics", "calibration", "groups", "precision", "task_digest"):
        if (given := known.attrs.get(key)) != (own := ds.attrs.get(key)):
            text = "the digest of samples, loss, metrics and frozen tensors" if key == "task_digest" else key
            raise ValueError(f"the known surface has {text} = {given}, this sweep has {own}; start it anew.")
    for name in ds.data_vars:
        if name in known:
            ds[name].values[:] = known[name].values
