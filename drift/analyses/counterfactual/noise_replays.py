"""Replays of the clients of a round with other minibatches, and the inner products of their updates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from drift.analyses.counterfactual.all_clients import ClientsToTrain, find_clients_to_train, frozen_update
from drift.analyses.counterfactual.noise_terms import LEAST, Replays
from drift.config.method import Method
from drift.engines import batched
from drift.engines.choice import unfit
from drift.methods.fednova import path_length
from drift.runs.client_of_round import recorded_clients
from drift.runs.run import Run
from drift.store.column_blocks import blocks
from drift.store.row_matrices import filled
from drift.training.client import Client, steps
from drift.training.correction import Correction
from landscape.batched_training.dense_stacks import DenseGradients
from landscape.model.samples import Samples

Fractions = tuple[float, ...]
"""Shares of the local steps, ascending to 1."""

Job = tuple[int, int, tuple[int, ...], Fractions]
"""(round, client, replicates, fractions)."""

GROUP = 10
"""Clients of a round that are trained together; results depend on it by rounding."""


@dataclass(frozen=True)
class Replayed:
    """Trainings of one client.

    Args:
        steps: Local steps at each fraction.
        frozen: Frozen updates there, shape (n, d).
        updates: Updates of r replays there, shape (r, n, d).
    """

    steps: list[int]
    frozen: Tensor
    updates: Tensor


@dataclass(frozen=True)
class ReplayPlan:
    """Trainings of one round.

    Args:
        plan: The round, the weights of all K clients and the recorded models.
        who: Clients whose updates are compared, m of them.
        jobs: Trainings that the record lacks, one job per client.
        cohort: Clients of the recorded cohort that count.
    """

    plan: ClientsToTrain
    who: list[int]
    jobs: list[Job]
    cohort: int

    @property
    def groups(self) -> list[list[Job]]:
        """The jobs, `GROUP` at a time."""
        return [self.jobs[begin : begin + GROUP] for begin in range(0, len(self.jobs), GROUP)]


def require_plain_training(run: Run) -> None:
    """Raise ValueError unless clients train on their own data by SGD from the start, LookupError without data."""
    local, method, what = run.experiment.local, run.method, ""
    _ = run.task  # which refuses a run without its data
    if local.optimizer != "sgd":
        what = f"with {local.optimizer}"
    elif local.persist_optimizer:
        what = "with moments of the round before"
    elif run.experiment.clients.partition.moves:
        what = "on other data in every round"
    elif local.compress != "none":
        what = f"with updates compressed by {local.compress}"
    elif method.own_training or method.stateful or type(method.unwrapped).finish is not Method.finish:
        what = f"as {method.label} does"
    if what:
        raise ValueError(_other_training(run, what))


def _other_training(run: Run, what: str) -> str:
    return (
        f"clients of run {run.name} train {what}; noise_or_drift needs SGD on the client's own data and loss, new in "
        "each round, as in fedavg, fedavgm, fedadam, fednova, fedlaw, ima and fedprox."
    )


def plan_replays(run: Run, index: int, *, all_clients: bool, replays: int, fractions: Fractions) -> ReplayPlan:
    """What has to be trained for a round; the record is a replay where updates are compared at the end alone.

    Raises:
        ValueError: If a client of the round diverged, or fewer than three count.
    """
    plan = find_clients_to_train(run, index)
    if len(plan.record.extras.get("excluded", ())):
        raise ValueError(_diverged(index))
    among = range(len(plan.counts)) if all_clients else plan.record.ids.tolist()
    who = [client for client in among if plan.counts[client] > 0]
    if len(who) < LEAST:
        raise ValueError(
            f"{len(who)} clients with samples count in round {index} of run {run.name}, and noise_or_drift needs "
            f"{LEAST}; name another round" + ("." if all_clients else ", or give clients='all'.")
        )
    recorded = plan.recorded if len(fractions) == 1 else {}
    jobs = [(index, client, tuple(range(int(client in recorded), replays)), fractions) for client in who]
    return ReplayPlan(plan, who, jobs, int((plan.counts[plan.record.ids] > 0).sum()))


def _diverged(index: int) -> str:
    return f"a client diverged in round {index}, so that it has no expected update; name other rounds."


def replay(run: Run, jobs: Sequence[Job]) -> list[Replayed]:
    """Trainings of clients of a round from the recorded start: chains of dense layers at once, others by the engine.

    Raises:
        ValueError: If the method changes the gradient at the start.
    """
    run.require_code()
    clients = list(recorded_clients(run, jobs[0][0], [client for _, client, *_ in jobs]))
    correction = run.method.correction(clients[0])
    if correction is not None:
        gradient = torch.ones_like(clients[0].start)
        correction(gradient, clients[0].start)
        if not bool((gradient == 1).all()):
            raise ValueError(_other_training(run, f"as {run.method.label} does"))
    at_once = run.setting.engine == "batched" or DenseGradients.from_model(clients[0].flat) is not None
    if not at_once or unfit(run.method, clients):
        return [replay_client(client, job[2], job[3], correction) for client, job in zip(clients, jobs, strict=True)]
    copies = [
        replace(client, replicate=replicate, local=client.local.model_copy(update={"steps": mark}))
        for client, (_, _, replicates, fractions) in zip(clients, jobs, strict=True)
        for replicate in replicates
        for mark in _marks(client, fractions)
    ]
    trained, _ = batched.train(run.method, copies)
    origins = [copy.start if copy.present is None else copy.present for copy in copies]
    rows = iter([(update.theta - origin).cpu() for update, origin in zip(trained, origins, strict=True)])
    shapes = [(len(replicates), len(fractions)) for _, _, replicates, fractions in jobs]
    updates = [torch.stack([*islice(rows, r * n)]).view(r, n, -1) for r, n in shapes]
    return [_replayed(client, job[3], one) for client, job, one in zip(clients, jobs, updates, strict=True)]


def replay_client(
    client: Client, replicates: Sequence[int], fractions: Fractions = (1.0,), correction: Correction | None = None
) -> Replayed:
    """Trainings of a client one after the other; replicate 0 is the recorded one."""
    marks = _marks(client, fractions)
    updates = [_updates(replace(client, replicate=replicate), correction, marks) for replicate in replicates]
    return _replayed(client, fractions, torch.stack(updates))


def _marks(client: Client, fractions: Fractions) -> list[int]:
    """Local steps of a client at each fraction."""
    tau = steps(client)
    return [min(tau, max(1, round(fraction * tau))) for fraction in fractions]


def _replayed(client: Client, fractions: Fractions, updates: Tensor) -> Replayed:
    marks = _marks(client, fractions)
    lengths = path_length(torch.tensor(marks).double(), client.local.momentum)
    lengths /= lengths[-1].clamp(min=1)
    frozen = frozen_update(client).cpu()
    return Replayed(marks, lengths.to(frozen)[:, None] * frozen, updates)


def _updates(client: Client, correction: Correction | None, marks: Sequence[int]) -> Tensor:
    """Updates (n, d) after numbers of steps."""
    models: list[Tensor] = []

    def batches() -> Iterator[Samples]:
        for step, batch in enumerate(client.batches()):
            models.extend(client.flat.theta.clone() for mark in marks if mark == step)
            yield batch

    end = client.train(correction, batches=batches()).theta
    models += [end] * (len(marks) - len(models))
    return torch.stack(models).sub_(client.start).cpu()


def inner_products(plan: ReplayPlan, replayed: Sequence[Replayed]) -> tuple[np.ndarray, list[Replays]]:
    """Mean number of local steps at each fraction, shape (n,), and the inner products of the updates there.

    Raises:
        ValueError: If a replay diverged.
    """
    start = plan.plan.record.kept("start")
    q = (plan.plan.counts / plan.plan.counts.sum()).numpy()
    shares, number = q[plan.who], int((q > 0).sum())
    products = []
    for column in range(len(replayed[0].steps)):
        rows = [item.frozen[column] for item in replayed]
        for client, (_, _, replicates, _), item in zip(plan.who, plan.jobs, replayed, strict=True):
            rows += [] if 0 in replicates else [plan.plan.recorded[client] - start]
            rows += [*item.updates[:, column]]
        products.append(products_of(filled(len(rows), start, rows), shares, number, plan.cohort))
        if not np.isfinite(products[-1].updates).all():
            raise ValueError(_diverged(plan.plan.record.index))
    return shares @ np.array([item.steps for item in replayed]) / shares.sum(), products


def products_of(vectors: Tensor, shares: np.ndarray, number: int, cohort: int) -> Replays:
    """Inner products of m frozen updates and the R updates of each client in turn, shape (m + m R, d)."""
    gram, m = torch.zeros(len(vectors), len(vectors), dtype=torch.float64), len(shares)
    for _, block in blocks(vectors):
        wide = block.double()
        gram.addmm_(wide, wide.T)
    inner, replays = gram.numpy(), (len(vectors) - m) // m
    mixed, updates = inner[m:, :m].reshape(m, replays, m), inner[m:, m:].reshape(m, replays, m, replays)
    return Replays(inner[:m, :m], mixed, updates, shares, number, cohort)
