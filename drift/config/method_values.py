"""What the hooks of a method take and return: settings, cohort, aggregate, outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from drift.store.column_blocks import weighted_models
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples
from landscape.model.task import Task

if TYPE_CHECKING:
    from drift.config.experiment import Experiment
    from drift.engines.pooled_clients import PooledClients


Beta = Annotated[float, Field(ge=0, lt=1)]
"""A decay rate of Adam's moments."""


Share = Annotated[float, Field(gt=0, le=1)]
"""A part of something, above 0."""


Weighting = Literal["samples", "uniform"]
"""Weighting of the clients of a cohort in their mean."""


State = dict[str, Tensor]
"""Tensors that a server or a client keeps between rounds, by name."""


CPU = torch.device("cpu")


@dataclass(frozen=True)
class Setting:
    """Constants of a run.

    Args:
        task, experiment: The task, and the settings.
        proxy: The server's proxy set, where there is one.
        engine: Name of the engine that trains the cohorts.
        crew: Other processes that do it in place of this one, with the bits of the engine `serial`.
        device: Device of local training and evaluation; all else runs on the CPU.
    """

    task: Task
    experiment: Experiment
    proxy: Samples | None = None
    engine: str = "serial"
    crew: PooledClients | None = field(default=None, compare=False, repr=False)
    device: torch.device = CPU

    @property
    def evaluators(self) -> int:
        """Threads that share an evaluation of the global model; 1 if torch has several threads of its own."""
        return 1 if self.crew is None or self.experiment.threads > 1 else self.crew.idle

    @cached_property
    def flat(self) -> Flat:
        """The workspace in which clients are trained, on `device`."""
        return self.task.flat(self.task.theta.to(self.device))


@dataclass(frozen=True)
class Cohort:
    """The results of local training in round `index`, with the state of the server.

    Args:
        theta: Server model before the round, shape (d,).
        start: The model that the clients received, shape (d,).
        ids, sizes: Client ids and sample counts, shape (m,).
        weights: Of the experiment, summing to 1, shape (m,): data sizes, or equal ones (`clients.weighting`).
        clients: Their models after local training, shape (m, d): `start` plus the update that the server received.
        steps: Their numbers of optimiser steps, shape (m,).
        late: Rounds between the model that they started from and this round, shape (m,); () where none is late.
        reports: Other tensors that they sent, by name, one row per client.
        buffers: Their floating buffers, shape (m, b).
        mean: `weighted_mean`, if it is known already.
    """

    index: int
    theta: Tensor
    start: Tensor
    ids: Tensor
    sizes: Tensor
    weights: Tensor
    clients: Tensor
    steps: Tensor
    reports: State = field(default_factory=dict)
    buffers: Tensor = field(default_factory=lambda: torch.zeros(0))
    mean: Tensor | None = None
    late: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.int64))

    @property
    def deltas(self) -> Tensor:
        """Client updates, client minus start, shape (m, d)."""
        return self.clients - self.start

    def mean_update(self, weights: Tensor) -> Tensor:
        """Sum of the client updates weighted by `weights` (m,), shape (d,), without a matrix of all of them."""
        return weighted_models(weights, self.clients, self.start)

    @property
    def weighted_mean(self) -> Tensor:
        """Mean of the clients by `weights`, shape (d,): that by data sizes (`Round.fma`) unless weights are equal."""
        return weighted_models(self.weights, self.clients) if self.mean is None else self.mean


@dataclass(frozen=True)
class Combined:
    """The plain aggregate of a cohort: a model (d,), its weights (m,), and extras to record."""

    theta: Tensor
    weights: Tensor
    extras: State = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """Result of a round: the new global model (d,), the weights used (m,), the new server state, extras to record.

    Floating buffers (b,) of the new global model are those of `Method.buffers`, unless they are given.
    """

    end: Tensor
    weights: Tensor
    state: State
    extras: State = field(default_factory=dict)
    buffers: Tensor | None = None


def averaging(cohort: Cohort, weighting: Weighting) -> Tensor:
    """Weights (m,) of a cohort's mean: those of the experiment, or equal for all clients that have samples."""
    active = (cohort.sizes > 0).double()
    return cohort.weights if weighting == "samples" or not bool(active.any()) else active / active.sum()
