"""Replays of the clients of a round with other minibatches, and the inner products of their updates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from drift.analyses.counterfactual.all_clients import ClientsToTrain, find_clients_to_train, frozen_update
from drift.analyses.counterfactual.noise_terms import Replays
from drift.methods.fednova import path_length
from drift.runs.run import Run
from drift.store.column_blocks import blocks
from drift.store.row_matrices import filled
from drift.training.client import Client, steps
from landscape.model.samples import Samples

Fractions = tuple[float, ...]
"""Shares of the local steps, ascending to 1."""

Job = tuple[int, int, int, Fractions]
"""(round, client, replicate, fractions)."""

LEAST = 3
"""Clients that an interval needs: one of them is left out in turn, and pairs remain."""


@dataclass(frozen=True)
class ReplayPlan:
    """Trainings of one round.

    Args:
        plan: The round, the weights of all K clients and the recorded models.
        who: Clients whose updates are compared, m of them.
        jobs: Trainings that the record lacks.
        replays: R, trainings of each client.
        fractions: Shares of the local steps after which updates are compared.
    """

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


def plan_replays(run: Run, index: int, *, everyone: bool, replays: int, fractions: Sequence[float]) -> ReplayPlan:
    """What has to be trained for a round.

    Raises:
        LookupError: If the round kept no start.
        ValueError: If a client of the round diverged, or fewer than three count.
    """
    plan, fixed = find_clients_to_train(run, index), tuple(map(float, fractions))
    if len(plan.record.extras.get("excluded", ())) or not bool(plan.record.kept("start").isfinite().all()):
        raise ValueError(_diverged(run, index))
    among = range(len(plan.counts)) if everyone else plan.record.ids.tolist()
    who = [client for client in among if plan.counts[client] > 0]
    if len(who) < LEAST:
        raise ValueError(
            f"{len(who)} clients with samples count in round {index} of run {run.name}, and noise_or_drift needs "
            f"{LEAST}; name another round" + ("." if everyone else ", or give clients='all'.")
        )
    jobs = [(index, k, replay, fixed) for k in who for replay in range(int(k in plan.recorded), replays)]
    return ReplayPlan(plan, who, jobs, replays, fixed)


def _diverged(run: Run, index: int) -> str:
    return f"a client diverged in round {index} of run {run.name}, and has no expected update; name other rounds."


def replay(run: Run, job: Job) -> Tensor:
    """Updates (n, d) of a client after each fraction of its local steps; replicate 0 is the recorded training.

    Raises:
        ValueError: If the method changes the gradient at the start.
    """
    index, number, replicate, fractions = job
    client = run.client(index, number, replicate=replicate)
    if (correction := run.method.correction(client)) is not None:
        gradient = torch.ones_like(client.start)
        correction(gradient, client.start)
        if not bool((gradient == 1).all()):
            raise ValueError(_other_training(run))
    marks, models = _marks(client, fractions), list[Tensor]()

    def batches() -> Iterator[Samples]:
        for step, batch in enumerate(client.batches()):
            models.extend(client.flat.theta.clone() for mark in marks if mark == step)
            yield batch

    end = client.train(correction, batches=batches()).theta
    models += [end] * (len(marks) - len(models))
    return torch.stack(models).sub_(client.start).cpu()


def _marks(client: Client, fractions: Fractions) -> list[int]:
    """Steps after which the updates of a client are compared."""
    return [min(steps(client), max(1, round(fraction * steps(client)))) for fraction in fractions]


def inner_products(
    run: Run, plan: ReplayPlan, updates: Mapping[Job, Tensor]
) -> tuple[np.ndarray, list[Replays | None]]:
    """Mean number of local steps at each fraction, shape (n,), and the inner products of the updates there.

    None: fewer than two replays of a client are known at a fraction, as the record holds no model in between.

    Raises:
        ValueError: If a replay diverged.
    """
    start, q, who, m = plan.plan.record.kept("start"), plan.shares, plan.who, len(plan.who)
    ready = [run.client(plan.index, client) for client in who]
    marks = np.array([_marks(client, plan.fractions) for client in ready])
    lengths = path_length(torch.from_numpy(marks).double(), ready[0].local.momentum).numpy()
    lengths /= lengths[:, -1:].clip(1)
    frozen = [frozen_update(client).cpu() for client in ready]
    products: list[Replays | None] = []
    for place, fraction in enumerate(plan.fractions):
        known = {job[1:3]: update[place] for job, update in updates.items() if job[0] == plan.index}
        if fraction == 1:
            known |= {(k, 0): model - start for k, model in plan.plan.recorded.items() if (k, 0) not in known}
        names = [(k, replicate) for k in who for replicate in range(plan.replays)]
        active = np.array([name in known for name in names]).reshape(m, -1)
        if (active.sum(1) < 2).any():
            products.append(None)
            continue
        scaled = (part * float(factor) for part, factor in zip(frozen, lengths[:, place], strict=True))
        rows = (known.get(name, torch.zeros_like(start)) for name in names)
        gram = _gram(filled(m + len(names), start, chain(scaled, rows)))
        if not np.isfinite(gram).all():
            raise ValueError(_diverged(run, plan.index))
        shape = m, plan.replays, m, plan.replays
        mixed, own = gram[m:, :m].reshape(shape[:3]), gram[m:, m:].reshape(shape)
        products.append(Replays(gram[:m, :m], mixed, own, active, q[who], int((q > 0).sum()), plan.cohort))
    return q[who] @ marks / q[who].sum(), products


def _gram(vectors: Tensor) -> np.ndarray:
    total = torch.zeros(len(vectors), len(vectors), dtype=torch.float64)
    for _, block in blocks(vectors):
        wide = block.double()
        total.addmm_(wide, wide.T)
    return total.numpy()
