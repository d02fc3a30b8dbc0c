"""Cohorts, settings and rounds made by hand, in float64 and unequal in every size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from drift.analyses.decomposition.five_factors import partial_sums, quantities
from drift.config.experiment import Experiment
from drift.config.method import Method
from drift.config.method_values import Cohort, Outcome, Setting, State
from drift.runs.context import Context
from drift.store.round_record import Round, gram
from landscape.model.samples import Samples
from landscape.model.task import Task
from tests.oracles import half_squared_error


def vector(*values: float) -> Tensor:
    """Values as a float64 vector."""
    return torch.tensor(values, dtype=torch.float64)


def random(*shape: int, seed: int = 0) -> Tensor:
    """Standard normal numbers in float64."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def experiment(method: Any = "fedavg", *, rounds: int = 10, number: int = 4, **options: Any) -> Experiment:
    """A valid experiment on blobs with a linear model; `clients` options may be given as a dict."""
    clients = {"number": number, "per_round": min(2, number), "partition": "iid", **options.pop("clients", {})}
    task = {"dataset": "blobs", "model": "linear"}
    return Experiment(rounds=rounds, task=task, clients=clients, method=method, **options)


def task(d: int = 3) -> Task:
    """Linear regression with d parameters in two named tensors (1 and d - 1 of them), float64; d = 1 has one."""
    inputs = random(7, max(d - 1, 1), seed=1)
    model = nn.Linear(max(d - 1, 1), 1, bias=d > 1, dtype=torch.float64)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    held = Samples(inputs, inputs.sum(1))
    return Task(model, {"train": held, "test": held}, loss=half_squared_error, metrics={})


def setting(method: Any = "fedavg", *, d: int = 3, proxy: Samples | None = None, **options: Any) -> Setting:
    """A setting around `task(d)`; options go to `experiment`."""
    return Setting(task(d), experiment(method, **options), proxy)


def cohort(
    clients: Tensor,
    *,
    start: Tensor | None = None,
    theta: Tensor | None = None,
    sizes: Sequence[int] | None = None,
    ids: Sequence[int] | None = None,
    index: int = 0,
    weights: Tensor | None = None,
) -> Cohort:
    """A cohort that returned the models `clients` (m, d); start and theta default to zeros and start, sizes to 1."""
    start = torch.zeros_like(clients[0]) if start is None else start
    counts = torch.tensor([1] * len(clients) if sizes is None else list(sizes))
    return Cohort(
        index=index,
        theta=start if theta is None else theta,
        start=start,
        ids=torch.arange(len(clients)) if ids is None else torch.tensor(list(ids)),
        sizes=counts,
        weights=counts.double() / counts.sum() if weights is None else weights,
        clients=clients,
        steps=torch.ones(len(clients), dtype=torch.int64),
        buffers=torch.zeros(len(clients), 0, dtype=clients.dtype),
    )


def record(group: Cohort, end: Tensor, *, previous: Tensor | None = None, weights: Tensor | None = None) -> Round:
    """The round of a cohort and a new global model, with its Gram matrix; the previous update defaults to zero."""
    previous = torch.zeros_like(end) if previous is None else previous
    return Round(
        index=group.index,
        ids=group.ids,
        sizes=group.sizes,
        weights=group.weights if weights is None else weights,
        gram=gram(group.start, previous, end - group.start, group.deltas),
        start=group.start,
        end=end,
        clients=group.clients,
    )


@dataclass(frozen=True)
class Played:
    """What `play` saw: every cohort, outcome and record, and the last server state."""

    groups: list[Cohort]
    outcomes: list[Outcome]
    records: list[Round]
    state: State


def play(
    method: Method, setting: Setting, theta: Tensor, updates: Tensor, *, sizes: Sequence[int] | None = None
) -> Played:
    """Rounds in which the clients' updates, client minus start, are prescribed: updates (R, m, d).

    The loop is written out here once more, without simulate.py, so that the two can be compared.
    """
    state, previous = method.initial(setting, theta), torch.zeros_like(theta)
    groups, outcomes, records = [], [], []
    for index, deltas in enumerate(updates):
        start = method.broadcast(state, theta, index)
        group = cohort(start + deltas, start=start, theta=theta, sizes=sizes, index=index)
        expected = method.momentum(state)
        outcome = method.aggregate(setting, state, group)
        made = record(group, outcome.end, previous=previous if expected is None else expected, weights=outcome.weights)
        groups.append(group)
        outcomes.append(outcome)
        records.append(_with_extras(made, outcome.extras))
        state, theta, previous = outcome.state, outcome.end, group.weights @ deltas
    return Played(groups, outcomes, records, state)


def _with_extras(made: Round, extras: State) -> Round:
    return Round(**{**vars(made), "extras": dict(extras)})


@dataclass(frozen=True)
class HandRun:
    """Looks like drift.runs.run.Run to an analysis that reads records: rounds, experiment, layout, task."""

    records: list[Round]
    experiment: Experiment = field(default_factory=experiment)
    d: int = 3
    name: str = "by-hand"
    loss_units: str = "nats"
    unequal: str = ""
    context: Context = field(default_factory=Context)

    @property
    def metric_names(self) -> dict[str, str]:
        """No number has another name."""
        return {}

    @property
    def about(self) -> dict[str, Any]:
        """Layout of run.json."""
        return {"layout": [["theta", [self.d]]]}

    @property
    def layout(self) -> Any:
        """Only its size."""
        return SimpleNamespace(size=self.d)

    @property
    def task(self) -> Any:
        """Only its layout."""
        return SimpleNamespace(layout=self.layout)

    @property
    def method(self) -> Method:
        """The experiment's method."""
        return self.experiment.method

    def rounds(self) -> list[int]:
        """Indices of the records."""
        return [made.index for made in self.records]

    def kept(self, what: str = "clients") -> list[int]:
        """Rounds that stored "clients" or "globals"."""
        stored = {"clients": "clients", "globals": "end"}[what]
        return [made.index for made in self.records if getattr(made, stored) is not None]

    def keeps(self, index: int, what: str = "clients", *, least: int = 1) -> bool:
        """Whether a round stored them, "clients" at least so many."""
        return index in self.kept(what) and (what != "clients" or len(self.round(index).clients) >= least)

    def require_round(self, index: int) -> int:
        """Number of a round that is there."""
        return self.round(index).index

    def without_models(self, indices: Sequence[int]) -> Iterator[Round]:
        """Records of rounds."""
        return (self.round(index) for index in indices)

    def round(self, index: int) -> Round:
        """The record of a round; negative from the last."""
        if index < 0:
            return self.records[index]
        return next(made for made in self.records if made.index == index)


def five_factors(
    outputs: Tensor,
    targets: Tensor,
    member: Tensor,
    weights: Tensor,
    *,
    shares: Tensor | None = None,
    fma: Tensor | None = None,
) -> dict[str, float]:
    """The quantities of a decomposition from all samples at once; each has the same share by default."""
    given = torch.full((len(targets),), 1 / len(targets), dtype=torch.float64) if shares is None else shares
    return quantities(partial_sums(outputs, targets, member, weights, given, fma=fma), weights, len(outputs))
