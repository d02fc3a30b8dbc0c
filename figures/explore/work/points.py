"""The evaluator that stays warm: loss, error and error per class of one combination of a round's models.

Functions that jobs call in their process. Models, samples and evaluators of recent calls are kept; a value has the bits
that `landscape.evaluate` gives.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drift.analyses.landscapes.models_plane import task_with_classes
from drift.analyses.landscapes.named_models import cohort_models
from drift.analyses.landscapes.sweeps import client_sweep
from drift.analyses.selected_samples import selected_samples
from drift.runs.run import Run
from figures.explore.work.addresses import share_data
from figures.explore.work.shelf import Shelf
from figures.explore.work.versions import round_version
from figures.page.packed import finite, packed
from figures.page.paired_losses import loss_parts
from landscape.model.batchnorm import normalisers
from landscape.model.losses import counted
from landscape.model.model import buffers_of, plain
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.sweep.evaluate import sweep_work
from landscape.sweep.evaluation import Evaluation
from landscape.sweep.grid import Sweep
from landscape.sweep.worker import Worker, mean_metrics

FARTHEST = 1e35
"""Absolute coefficients of a point that float32 holds with a margin."""


@dataclass(frozen=True)
class Query:
    """What a point combines, and the samples that it is evaluated on.

    Args:
        round: Number of a round.
        models: "plane": the basis of the plane on the stage; "cohort": all clients, ids ascending.
        split: test, train, proxy, or "client 3".
        samples: At most so many of these; None: all.
    """

    round: int
    models: str
    split: str = "test"
    samples: int | None = None


@dataclass(frozen=True)
class StagePlane:
    """The plane of a round on the stage.

    Args:
        sweep: Its sweep.
        clients: Ids of the three clients.
        centre: Coordinates of their mean, from which distances on the stage count, shape (2,).
    """

    sweep: Sweep
    clients: tuple[int, ...]
    centre: np.ndarray

    def row(self, spot: Sequence[float]) -> np.ndarray:
        """Coefficients of the basis at distances from the mean; the fourth is that of a direction beside a line."""
        steps = self.centre + np.asarray(spot, dtype=float)
        return np.asarray(self.sweep.origin + steps @ self.sweep.axes)


def stage_plane(run: Run, index: int) -> StagePlane:
    """The plane of a round on the stage.

    Raises:
        LookupError, ValueError: As `figures.page.stage_round.stage_round`.
    """

    def make() -> StagePlane:
        _, clients, sweep = client_sweep(run, index, None, points=2, margin=0.3, box="symmetric")
        (mean,) = (mark for mark in sweep.marks if mark.name == "mean")
        return StagePlane(sweep, tuple(clients), np.asarray(mean.at, dtype=float))

    plane: StagePlane = _SHARED.get((round_version(run, index), "plane"), make, lambda plane: plane.sweep.basis.nbytes)
    return plane


def numbers(run: Run, query: Query, row: Sequence[float]) -> dict[str, Any]:
    """What is known of a combination of the models of a query.

    Returns:
        loss and error, means over the samples (error None where the task has none); class_error, of each class (None
        without samples of it); parts, the loss on parts of the samples (base64 float32); samples, their number;
        statistics, of batch normalisation: own, recomputed, or "".

    Raises:
        ValueError: If the model of the point has no finite numbers, or there is no such split.
    """
    if not np.abs(row).max(initial=0) < FARTHEST:
        raise ValueError("this point is too far away: its model has no finite numbers; select a nearer one.")
    worker = _evaluator(run, query)
    with torch.no_grad():
        worker.take([[float(value) for value in row]])
        passed = list(worker.outputs(worker.blocks))
        means = {name: value.numpy()[0] for name, value in mean_metrics(worker.work, 1, passed).items()}
    parts, shares = loss_parts(worker.work.task, worker.work.samples)
    work = replace(worker.work, groups=parts, measures={"loss": worker.work.measures["loss"]})
    of_parts = mean_metrics(work, 1, passed)["loss"].numpy().reshape(-1)
    single = worker.work.buffers is not None and sorted(row) == [0.0] * (len(row) - 1) + [1.0]
    return {
        "loss": finite(means["loss"]),
        "error": finite(means["error"]) if "error" in means else None,
        "class_error": [finite(value) for value in means.get("class_error", ())],
        "parts": packed(np.where(shares > 0, of_parts, np.nan)),
        "samples": counted(worker.work.task.per_sample, worker.work.samples.targets),
        "statistics": "" if not normalisers(worker.work.task.model) else "own" if single else "recomputed",
    }


_SHARED = Shelf(24, 2**30)
_THREAD = threading.local()


def cohort(run: Run, index: int) -> Tensor:
    """All clients of a round, ids ascending, shape (m, d); they carry their floating buffers where they have any."""
    key = (round_version(run, index), "cohort")
    models: Tensor = _SHARED.get(key, lambda: cohort_models(run, index).models, lambda basis: basis.nbytes)
    return models


def _samples(run: Run, query: Query) -> tuple[Task, Samples]:
    """The task, with errors per class where there are classes, and the samples of a query."""

    def make() -> tuple[Task, Samples]:
        share_data(run)
        samples = selected_samples(run, query.round, query.split, query.samples)
        return task_with_classes(run, samples), samples

    number = query.round if query.split.startswith("client") else None
    identity = run.folder.resolve(), run.identity, id(run.context.user_task)
    return _SHARED.get((identity, "samples", number, query.split, query.samples), make)


def _evaluator(run: Run, query: Query) -> Worker:
    """The evaluator of this thread for a query."""

    def make() -> Worker:
        if query.models == "plane":
            basis, buffers = (sweep := stage_plane(run, query.round).sweep).basis, sweep.buffers
        else:
            basis = cohort(run, query.round)
            buffers = buffers_of(basis)
        task, samples = _samples(run, query)
        evaluation = Evaluation(split=samples).between(task)
        return Worker(sweep_work(task, plain(basis), evaluation, buffers=buffers))

    if not hasattr(_THREAD, "shelf"):
        _THREAD.shelf = Shelf(4)
    worker: Worker = _THREAD.shelf.get((round_version(run, query.round), id(run.context.user_task), query), make)
    return worker
