"""The evaluator that stays warm: loss, error, error per class and more at combinations of a run's models.

Functions that jobs call in their process: (run, item) -> small results. Models, samples and evaluators of recent calls
are kept; a value has the bits that `landscape.evaluate` gives.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drift.analyses.landscapes.models_plane import labelled, line_sweep, plane_sweep, task_with_classes
from drift.analyses.landscapes.named_models import cohort_models, named_models
from drift.analyses.selected_samples import selected_samples
from drift.runs.run import Run
from figures.explore.plane.queries import COHORT, Grid, GridValues, Numbers, PointQuery, Values
from figures.explore.work import stopping
from figures.explore.work.addresses import share_data
from figures.explore.work.shelf import Shelf
from figures.explore.work.versions import version
from landscape.measures.predictions import confusion_counts
from landscape.model.batchnorm import normalisers
from landscape.model.losses import IGNORED, counted
from landscape.model.model import buffers_of, plain
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.surfaces.point_table import PointTable
from landscape.surfaces.surface import empty_surface
from landscape.sweep.evaluate import MEMORY, sweep_work
from landscape.sweep.evaluation import Evaluation
from landscape.sweep.grid import Sweep
from landscape.sweep.precision import Precision
from landscape.sweep.threads import at_points
from landscape.sweep.worker import Points, Worker, mean_metrics
from landscape.sweep.worker import Values as Tensors

SMALL = 8 * 2**20
"""Bytes of point models that an evaluator keeps for its next call."""


def values(run: Run, item: tuple[PointQuery, Sequence[Sequence[float]]]) -> Values:
    """Metrics at points: rows of coefficients of the place's models, shape (P, n)."""
    query, rows = item
    return _numpy(at_points(_evaluator(run, query), _plain(rows)))


def empty_table(run: Run, grid: Grid) -> PointTable:
    """The points of a grid and its labelled surface, without values."""
    sweep, query = swept(run, grid), grid.query
    task, samples = _samples(run, query)
    surface = empty_surface(task, sweep, Evaluation(split=samples, precision=query.precision).between(task))
    return PointTable(sweep, labelled(run, surface, query.round, query.split, f"models_{grid.kind}"))


def grid_values(run: Run, item: tuple[Grid, Sequence[Sequence[float]], Precision, int | None]) -> GridValues:
    """Metrics at points of a grid.

    Args:
        run: The run.
        item: The grid, rows of coefficients of its basis, the precision, in place of the grid's own, and the number of
            samples at most, or None: those of the grid, which have the fewer ones among them.
    """
    grid, rows, precision, most_samples = item
    asked = len(_samples(run, grid.query)[1])
    samples = grid.query.samples if most_samples is None or most_samples >= asked else most_samples
    worker = _evaluator(run, replace(grid, query=replace(grid.query, precision=precision, samples=samples)))
    used = len(worker.work.samples)
    begun = time.thread_time()
    points = _plain(rows)
    most = max(1, min(len(points), MEMORY // (3 * worker.work.basis[0].nbytes + 1)))
    chunks = [at_points(_Stoppable(worker), points[start : start + most]) for start in range(0, len(points), most)]
    joined = {name: torch.cat([chunk[name] for chunk in chunks]) for name in chunks[0]}
    if most * worker.work.basis[0].nbytes > SMALL:
        worker.free()
    seconds = (time.thread_time() - begun) / len(rows) * asked / used
    return GridValues(_numpy(joined), seconds, not any(worker.coarse), used, used == asked)


class _Stoppable:
    """An evaluator whose chunks end between two forward passes if their call is stopped."""

    def __init__(self, worker: Worker) -> None:
        self.worker, self.work = worker, worker.work

    def chunk(self, points: Points) -> Tensors:
        self.worker.take(points)
        outputs = self.worker.outputs(self.worker.blocks)
        return mean_metrics(self.work, len(points), stopping.until_stopped(outputs))

    def free(self) -> None:
        self.worker.free()


def numbers(run: Run, item: tuple[PointQuery, Sequence[float]]) -> Numbers:
    """Loss, error, error per class and confusion at one point."""
    query, row = item
    worker = _evaluator(run, query)
    with torch.no_grad():
        worker.take(_plain([row]))
        passed = list(worker.outputs(worker.blocks))
        means = _numpy(mean_metrics(worker.work, 1, passed))
    outputs = torch.cat([outputs for _, _, outputs in passed])
    class_error = means.get("class_error", np.zeros((1, 0)))[0]
    error = float(means["error"][0]) if "error" in means else float("nan")
    confusion = np.zeros((0, 0), dtype=np.int64)
    if class_error.size and not bool(outputs.isnan().any()):
        targets = worker.work.task.labels(worker.work.samples)
        known = targets != IGNORED
        confusion = confusion_counts(targets[known].numpy(), outputs.argmax(1)[known].numpy(), class_error.size)
    number = counted(worker.work.task.per_sample, worker.work.samples.targets)
    single = worker.work.buffers is not None and sorted(row) == [0.0] * (len(row) - 1) + [1.0]
    statistics = "" if not normalisers(worker.work.task.model) else "own" if single else "recomputed"
    return Numbers(float(means["loss"][0]), error, class_error, confusion, number, statistics)


def client_losses(run: Run, item: tuple[PointQuery, Sequence[float]]) -> dict[int, float]:
    """Loss of one point on the training samples of each client of the round's cohort, by id; NaN without samples."""
    query, row = item
    parts = run.parts_in(query.round)
    ids = sorted(run.round(query.round).ids.tolist())
    losses = {}
    for client in ids:
        if len(parts[client]) == 0:
            losses[client] = float("nan")
            continue
        of_client = replace(query, split=f"client {client}")
        losses[client] = float(at_points(_evaluator(run, of_client), _plain([row]))["loss"][0])
    return losses


def _plain(rows: Any) -> list[list[float]]:
    return [[float(value) for value in row] for row in np.asarray(rows, dtype=float)]


def _numpy(tensors: dict[str, Tensor]) -> Values:
    return {name: value.numpy() for name, value in tensors.items()}


_SHARED = Shelf(24, 2**30)
_THREAD = threading.local()


def swept(run: Run, grid: Grid) -> Sweep:
    """The sweep of a grid, its models in memory."""

    def make() -> Sweep:
        query = grid.query
        if grid.kind == "line":
            return line_sweep(run, query.round, query.models, points=grid.points)
        box = grid.box
        return plane_sweep(run, query.round, query.models, points=grid.points, margin=grid.margin, box=box)

    plain = replace(grid, query=replace(grid.query, split="", samples=None, precision="exact"))
    return _SHARED.get((version(run, plain.query.models), plain), make, lambda sweep: sweep.basis.nbytes)


def _basis(run: Run, query: PointQuery) -> Tensor:
    """Models (n, d) of a place, which carry their floating buffers (n, b) where they have any."""

    def make() -> Tensor:
        named = (
            cohort_models(run, query.round) if query.models == COHORT else named_models(run, query.round, query.models)
        )
        return named.models

    key = (version(run, query.models), "models", query.round, query.models)
    return _SHARED.get(key, make, lambda basis: basis.nbytes)


def _samples(run: Run, query: PointQuery) -> tuple[Task, Samples]:
    """The task, with errors per class where there are classes, and the samples of a place."""

    def make() -> tuple[Task, Samples]:
        share_data(run)
        samples = selected_samples(run, query.round, query.split, query.samples)
        return task_with_classes(run, samples), samples

    number = query.round if query.split.startswith("client") else None
    return _SHARED.get((version(run), "samples", number, query.split, query.samples), make)


def _evaluator(run: Run, what: PointQuery | Grid) -> Worker:
    """The evaluator of this thread for a place or grid."""
    query = what if isinstance(what, PointQuery) else what.query

    def make() -> Worker:
        if isinstance(what, PointQuery):
            basis = _basis(run, what)
            buffers = buffers_of(basis)
        else:
            basis, buffers = (sweep := swept(run, what)).basis, sweep.buffers
        task, samples = _samples(run, query)
        evaluation = Evaluation(split=samples, precision=query.precision).between(task)
        return Worker(sweep_work(task, plain(basis), evaluation, buffers=buffers))

    if not hasattr(_THREAD, "shelf"):
        _THREAD.shelf = Shelf(4)
    worker: Worker = _THREAD.shelf.get((version(run, query.models), what), make)
    return worker
