"""Replays of the clients of a round with other minibatches, and the inner products of their updates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod

import numpy as np
import torch
from torch import Tensor

from drift.analyses.counterfactual.all_clients import ClientsToTrain, find_clients_to_train, frozen_update
from drift.analyses.counterfactual.noise_terms import LEAST, Replays
from drift.config.method import Method
from drift.config.random_keys import rng
from drift.engines import train
from drift.engines.choice import unfit
from drift.methods.fednova import path_length
from drift.runs.client_of_round import recorded_clients, require_known_training
from drift.runs.run import Run
from drift.store.column_blocks import blocks
from drift.store.row_matrices import filled
from drift.training.client import Client, steps
from drift.training.correction import Correction
from landscape.batched_training.dense_stacks import DenseGradients
from landscape.model.samples import Samples

Fractions = tuple[float, ...]
"""Shares of the local steps, ascending to 1."""

Job = tuple[int, Fractions, dict[int, range]]
"""(round, fractions, replicates by client): clients that are trained together."""

GROUP = 10
"""Clients of a job; the bits of results depend on it."""


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
        recorded: Models (d,) that are a replay, by client.
        jobs: Trainings that the record lacks, of `who` in order.
        cohort: Clients of the recorded cohort that count.
    """

    plan: ClientsToTrain
    who: list[int]
    recorded: dict[int, Tensor]
    jobs: list[Job]
    cohort: int

    @property
    def trainings(self) -> int:
        """Number of trainings in all jobs."""
        return sum(len(replicates) for _, _, clients in self.jobs for replicates in clients.values())


def require_plain_training(run: Run) -> None:
    """Raise ValueError unless clients train on their own data by SGD from the start, LookupError without data."""
    local, method = run.experiment.local, run.method
    _ = run.task  # which refuses a run without its data
    require_known_training(run)
    unlike = method.own_training or method.stateful or type(method.unwrapped).finish is not Method.finish
    reasons = {f"with {local.optimizer}": local.optimizer != "sgd"}
    reasons |= {"with moments of the round before": local.persist_optimizer}
    reasons |= {"on other data in every round": run.experiment.clients.partition.moves}
    reasons |= {f"with updates compressed by {local.compress}": local.compress != "none"}
    reasons |= {f"as {method.label} does": unlike}
    if any(reasons.values()):
        raise ValueError(_other_training(run, next(what for what, applies in reasons.items() if applies)))


def _other_training(run: Run, what: str) -> str:
    return (
        f"clients of run {run.name} train {what}; noise_or_drift needs SGD on the client's own data and loss, new in "
        "each round, as in fedavg, fedavgm, fedadam, fednova, fedlaw, ima and fedprox."
    )


def plan_replays(run: Run, index: int, *, clients: str | int, replays: int, fractions: Fractions) -> ReplayPlan:
    """What has to be trained for a round; the record is a replay where updates are compared at the end alone.

    Raises:
        ValueError: If a client of the round diverged, or fewer than three count, or than were asked for.
    """
    plan = find_clients_to_train(run, index)
    if len(plan.record.extras.get("excluded", ())):
        raise ValueError(_diverged(index))
    among = range(len(plan.counts)) if clients == "all" else plan.record.ids.tolist()
    who = [client for client in among if plan.counts[client] > 0]
    if len(who) < (least := clients if isinstance(clients, int) else LEAST):
        raise ValueError(
            f"{len(who)} clients with samples count in round {index} of run {run.name}, and noise_or_drift needs "
            f"{least}; name another round"
            + (", or give clients='all'." if int((plan.counts > 0).sum()) >= least else ".")
        )
    if isinstance(clients, int):
        who = sorted(rng(run.experiment.seed, index, "replays").choice(who, clients, replace=False).tolist())
    recorded = plan.recorded if len(fractions) == 1 else {}
    missing = {client: range(int(client in recorded), replays) for client in who}
    groups = [who[begin : begin + GROUP] for begin in range(0, len(who), GROUP)]
    jobs = [(index, fractions, {client: missing[client] for client in group}) for group in groups]
    return ReplayPlan(plan, who, recorded, jobs, int((plan.counts[plan.record.ids] > 0).sum()))


def _diverged(index: int) -> str:
    return f"a client diverged in round {index}, so that it has no expected update; name other rounds."


def replay(run: Run, job: Job) -> list[Replayed]:
    """Trainings of clients from the recorded start, at once where the model is a chain of dense layers.

    Raises:
        ValueError: If the method changes the gradient at the start.
    """
    run.require_code()
    index, fractions, replicates = job
    clients = list(recorded_clients(run, index, [*replicates]))
    if (correction := run.method.correction(clients[0])) is not None:
        gradient = torch.ones_like(clients[0].start)
        correction(gradient, clients[0].start)
        if not bool((gradient == 1).all()):
            raise ValueError(_other_training(run, f"as {run.method.label} does"))
    dense = DenseGradients.from_model(clients[0].flat) is not None and not unfit(run.method, clients)
    return replay_clients("batched" if dense else run.setting.engine, run.method, clients, replicates, fractions)


def replay_clients(
    engine: str, method: Method, clients: list[Client], replicates: dict[int, range], fractions: Fractions = (1.0,)
) -> list[Replayed]:
    """Trainings of clients by an engine; replicate 0 is the recorded one."""
    marks = {
        client.id: [min(tau := steps(client), max(1, round(share * tau))) for share in fractions] for client in clients
    }
    every = [replace(client, replicate=replicate) for client in clients for replicate in replicates[client.id]]
    if engine == "batched" or len(fractions) == 1:
        copies = [
            replace(copy, local=copy.local.model_copy(update={"steps": mark}))
            for copy in every
            for mark in marks[copy.id]
        ]
        origins = [copy.start if copy.present is None else copy.present for copy in copies]
        trained = zip(train(engine, method, copies).updates, origins, strict=True)
        rows = iter([(update.theta - origin).cpu() for update, origin in trained])
    else:  # one training passes all marks
        rows = (update for copy in every for update in _updates(copy, method.correction(copy), marks[copy.id]))
    done = []
    for client in clients:
        shape, frozen = (len(replicates[client.id]), len(fractions)), frozen_update(client).cpu()
        lengths = path_length(torch.tensor(marks[client.id]).double(), client.local.momentum)
        lengths = (lengths / lengths[-1].clamp(min=1)).to(frozen)
        updates = torch.stack([*islice(rows, prod(shape))]).view(*shape, -1)
        done.append(Replayed(marks[client.id], lengths[:, None] * frozen, updates))
    return done


def _updates(client: Client, correction: Correction | None, marks: Sequence[int]) -> list[Tensor]:
    """Updates (d,) after numbers of steps, of one training."""
    models: list[Tensor] = []

    def batches() -> Iterator[Samples]:
        for step, batch in enumerate(client.batches()):
            models.extend(client.flat.theta.clone() for mark in marks if mark == step)
            yield batch

    end = client.train(correction, batches=batches()).theta
    return [(model - client.start).cpu() for model in models + [end] * (len(marks) - len(models))]


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
        for client, item in zip(plan.who, replayed, strict=True):
            rows += [plan.recorded[client] - start] if client in plan.recorded else []
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
