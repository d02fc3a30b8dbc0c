"""Replays of the clients of a round with other minibatches, and the inner products of their updates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from drift.analyses.counterfactual.all_clients import ClientsToTrain, find_clients_to_train, frozen_update
from drift.analyses.counterfactual.noise_terms import LEAST, Replays
from drift.methods.fednova import path_length
from drift.runs.run import Run
from drift.store.column_blocks import blocks
from drift.store.row_matrices import filled
from drift.training.client import Client, steps
from drift.training.correction import Correction
from landscape.model.samples import Samples

Fractions = tuple[float, ...]
"""Shares of the local steps, ascending to 1."""

Job = tuple[int, int, tuple[int, ...], Fractions]
"""(round, client, replicates, fractions)."""


@dataclass(frozen=True)
class Replayed:
    """Trainings of one client.

    Args:
        marks: Local steps at each fraction.
        lengths: Lengths of the frozen update there, the whole one being 1, shape (n,).
        frozen: Frozen update of the whole training, shape (d,).
        updates: By replicate, after each fraction, shape (n, d).
    """

    marks: list[int]
    lengths: Tensor
    frozen: Tensor
    updates: dict[int, Tensor]


@dataclass(frozen=True)
class ReplayPlan:
    """Trainings of one round.

    Args:
        name: Of the run.
        plan: The round, the weights of all K clients and the recorded models.
        who: Clients whose updates are compared, m of them.
        jobs: Trainings that the record lacks, one job per client.
        replays: R, trainings of each client.
        fractions: Shares of the local steps after which updates are compared.
    """

    name: str
    plan: ClientsToTrain
    who: list[int]
    jobs: list[Job]
    replays: int
    fractions: Fractions

    @property
    def index(self) -> int:
        """Number of the round."""
        return self.plan.record.index

    @property
    def shares(self) -> np.ndarray:
        """Weights q_k of all clients, shape (K,); they sum to 1."""
        return (self.plan.counts / self.plan.counts.sum()).numpy()

    @property
    def cohort(self) -> int:
        """Clients of the recorded cohort that count."""
        return int((self.plan.counts[self.plan.record.ids] > 0).sum())


def require_plain_training(run: Run) -> None:
    """Raise ValueError unless clients train on their own data by SGD from the start, LookupError without data."""
    local, method = run.experiment.local, run.method
    _ = run.task  # which refuses a run without its data
    if local.optimizer != "sgd" or local.persist_optimizer:
        what = f"is {local.optimizer}" if local.optimizer != "sgd" else "keeps its moments between rounds"
        raise ValueError(
            f"the local optimiser of run {run.name} {what}; noise_or_drift needs SGD that is new in each round."
        )
    if run.experiment.clients.partition.moves:
        raise ValueError(f"clients of run {run.name} get other data in every round; noise_or_drift needs their own.")
    if method.own_training or method.stateful:
        raise ValueError(_other_training(run))


def _other_training(run: Run) -> str:
    return (
        f"clients of {run.method.label} do not start with the gradient of their loss alone; noise_or_drift holds for "
        "plain local SGD (fedavg, fedavgm, fedadam, fednova, fedlaw, ima, ..) and for fedprox."
    )


def plan_replays(run: Run, index: int, *, all_clients: bool, replays: int, fractions: Sequence[float]) -> ReplayPlan:
    """What has to be trained for a round.

    Raises:
        LookupError: If the round kept no start.
        ValueError: If a client of the round diverged, or fewer than three count.
    """
    plan, fixed = find_clients_to_train(run, index), tuple(map(float, fractions))
    if len(plan.record.extras.get("excluded", ())) or not bool(plan.record.kept("start").isfinite().all()):
        raise ValueError(_diverged(run.name, index))
    among = range(len(plan.counts)) if all_clients else plan.record.ids.tolist()
    who = [client for client in among if plan.counts[client] > 0]
    if len(who) < LEAST:
        raise ValueError(
            f"{len(who)} clients with samples count in round {index} of run {run.name}, and noise_or_drift needs "
            f"{LEAST}; name another round" + ("." if all_clients else ", or give clients='all'.")
        )
    jobs = [(index, k, tuple(range(int(k in plan.recorded), replays)), fixed) for k in who]
    return ReplayPlan(run.name, plan, who, jobs, replays, fixed)


def _diverged(name: str, index: int) -> str:
    return f"a client diverged in round {index} of run {name}, and has no expected update; name other rounds."


def replay(run: Run, job: Job) -> Replayed:
    """Trainings of a client from the recorded start; replicate 0 is the recorded one.

    Raises:
        ValueError: If the method changes the gradient at the start.
    """
    index, number, replicates, fractions = job
    client = run.client(index, number)
    if (correction := run.method.correction(client)) is not None:
        gradient = torch.ones_like(client.start)
        correction(gradient, client.start)
        if not bool((gradient == 1).all()):
            raise ValueError(_other_training(run))
    tau = steps(client)
    marks = [min(tau, max(1, round(fraction * tau))) for fraction in fractions]
    lengths = path_length(torch.tensor(marks, dtype=torch.float64), client.local.momentum)
    again = (replace(client, replicate=replicate) for replicate in replicates)
    updates = {copy.replicate: _updates(copy, correction, marks) for copy in again}
    return Replayed(marks, lengths / lengths[-1].clamp(min=1), frozen_update(client).cpu(), updates)


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


def inner_products(plan: ReplayPlan, replayed: Sequence[Replayed]) -> tuple[np.ndarray, list[Replays | None]]:
    """Mean number of local steps at each fraction, shape (n,), and the inner products of the updates there.

    None: fewer than two replays of a client are known at a fraction, as the record holds no model in between.

    Args:
        plan: The round.
        replayed: Results of its jobs.

    Raises:
        ValueError: If a replay diverged.
    """
    start, q, m = plan.plan.record.kept("start"), plan.shares, len(plan.who)
    products: list[Replays | None] = []
    for column, fraction in enumerate(plan.fractions):
        known = [{replicate: update[column] for replicate, update in client.updates.items()} for client in replayed]
        for client_id, updates in zip(plan.who, known, strict=True):
            if fraction == 1 and client_id in plan.plan.recorded and 0 not in updates:
                updates[0] = plan.plan.recorded[client_id] - start
        active = np.array([[replicate in updates for replicate in range(plan.replays)] for updates in known])
        if (active.sum(1) < 2).any():
            products.append(None)
            continue
        frozen = (client.frozen * float(client.lengths[column]) for client in replayed)
        rows = (updates.get(number, torch.zeros_like(start)) for updates in known for number in range(plan.replays))
        gram = _gram(filled(m + active.size, start, chain(frozen, rows)))
        if not np.isfinite(gram).all():
            raise ValueError(_diverged(plan.name, plan.index))
        shape = m, plan.replays, m, plan.replays
        mixed, inner = gram[m:, :m].reshape(shape[:3]), gram[m:, m:].reshape(shape)
        products.append(Replays(gram[:m, :m], mixed, inner, active, q[plan.who], int((q > 0).sum()), plan.cohort))
    return q[plan.who] @ np.array([client.marks for client in replayed]) / q[plan.who].sum(), products


def _gram(vectors: Tensor) -> np.ndarray:
    total = torch.zeros(len(vectors), len(vectors), dtype=torch.float64)
    for _, block in blocks(vectors):
        wide = block.double()
        total.addmm_(wide, wide.T)
    return total.numpy()
