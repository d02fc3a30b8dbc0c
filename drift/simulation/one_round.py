"""One round: broadcast, local training, aggregation, evaluation, and the record of it."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.method_values import Cohort, Setting, State
from drift.config.random_keys import cohort
from drift.engines import CohortUpdates, train
from drift.simulation.unfinished_round import UnfinishedRound
from drift.store.client_rows import client_rows
from drift.store.round_record import Round, gram, gram_and_mean_update, gram_of_models, is_read_once, mean_and_sums
from drift.store.row_matrices import row_matrix
from drift.store.server_state import ClientStates
from drift.training.arrivals import Arrivals
from drift.training.client import Update
from drift.training.data import Data, client_samples
from drift.training.server import Server, clients, sent
from drift.training.unequal_clients import rounds_late, stopped
from landscape.model.whole_products import whole_products
from landscape.sweep.evaluate import model_metrics


def run_round(setting: Setting, data: Data, server: Server) -> tuple[Round, Server]:
    """One round: its record, and the server after it."""
    trained, after = train_round(setting, data, server)
    return trained.finished(), after


def train_round(
    setting: Setting, data: Data, server: Server, file: Path | None = None
) -> tuple[UnfinishedRound, Server]:
    """One round: its record but for the Gram matrix where that can wait, and the server after it.

    Args:
        file: Of the round, which is begun with client models that do not fit the memory budget.
    """
    experiment, method, index = setting.experiment, setting.experiment.method, server.next
    start = method.broadcast(server.state, server.theta, index)
    selected = cohort(experiment.seed, index, experiment.clients.number, experiment.clients.per_round)
    lost = stopped(experiment, index, selected)
    ids = np.setdiff1d(selected, lost)
    trained_ids = np.arange(experiment.clients.number) if experiment.clients.train_all else ids
    parts, held_out = client_samples(experiment, data, index)
    rows = client_rows(len(ids), start, file)
    workspace = setting.flat.theta if setting.crew is None else None
    arrivals = Arrivals(method, start, server.buffers, trained_ids.tolist(), ids.tolist(), rows, workspace)
    with whole_products(), arrivals:
        if setting.crew is None:
            ready = clients(setting, parts, held_out, server, start, trained_ids)
            trained = train(setting.engine, method, ready, arrivals)
        else:
            trained = CohortUpdates(setting.crew.train(server, start, trained_ids, arrivals))
    updates = dict(zip(trained_ids.tolist(), trained.updates, strict=True))
    sound = {client: update for client, update in updates.items() if client in arrivals.sound}
    client_states = {client: update.state for client, update in sound.items() if update.state}
    after = replace(server, clients=ClientStates(server.clients).updated(client_states), next=index + 1)
    if late := experiment.clients.late:
        past = {**(server.past or {}), index: (start, server.buffers)}
        after = replace(after, past={earlier: past[earlier] for earlier in sorted(past)[-late:]})

    finite = [client for client in ids.tolist() if client in sound]
    excluded = torch.tensor(sorted(set(ids.tolist()) - set(finite)), dtype=torch.int64)
    if not finite:
        nothing = torch.full_like(start, torch.nan)
        return UnfinishedRound(_empty(index, start, server.buffers, excluded)), replace(after, theta=nothing)

    sizes = torch.tensor([len(parts[client]) + len(held_out[client]) for client in finite], dtype=torch.int64)
    returned = [updates[client] for client in finite]
    group = Cohort(
        index=index,
        theta=server.theta,
        start=start,
        ids=torch.tensor(finite, dtype=torch.int64),
        sizes=sizes,
        weights=experiment.cohort_weights(sizes),
        clients=arrivals.models(finite),
        steps=torch.tensor([update.steps for update in returned], dtype=torch.int64),
        reports={name: row_matrix([update.report[name] for update in returned]) for name in returned[0].report},
        buffers=torch.stack([update.buffers for update in returned]),
        late=torch.tensor([rounds_late(experiment, index, client) for client in finite], dtype=torch.int64),
    )
    momentum = method.momentum(server.state)
    expected = server.previous if momentum is None else momentum
    in_file, sums = is_read_once(group.clients), None
    if method.averages and in_file:
        mean, sums = mean_and_sums(start, expected, group.clients, group.weights)
        group = replace(group, mean=mean)
    outcome = method.aggregate(setting, server.state, group)
    averaged = group.weights.to(server.buffers) @ group.buffers
    buffers = outcome.buffers
    if buffers is None:
        buffers = method.buffers(setting, outcome.end, averaged) if len(averaged) else averaged
    step = outcome.end - start
    if in_file and (sums is None or outcome.end is not group.mean):
        sums = gram_and_mean_update(start, expected, step, group.clients, group.weights)
    previous = group.mean_update(group.weights) if sums is None else sums[1]
    losses = torch.tensor([update.loss for update in returned], dtype=torch.float64)
    record = Round(
        index=index,
        ids=group.ids,
        sizes=group.sizes,
        weights=outcome.weights,
        gram=torch.zeros(0, 0) if sums is None else sums[0],
        metrics={
            "local_loss": float(group.weights @ torch.nan_to_num(losses)),
            **_metrics(setting, outcome.end, buffers, after, held_out),
            **({} if trained.useful is None else {"useful_fraction": trained.useful}),
        },
        start=start,
        end=outcome.end,
        clients=group.clients,
        start_buffers=server.buffers,
        end_buffers=buffers,
        client_buffers=group.buffers,
        extras={
            **outcome.extras,
            **({"excluded": excluded} if len(excluded) else {}),
            **_unequal(experiment, group, lost),
        },
        sent=sent(method, server),
        carried=_client_states(sound),
    )
    products = partial(gram_of_models, start, expected, step, group.clients) if sums is None else None
    after = replace(after, theta=outcome.end, buffers=buffers, previous=previous, state=outcome.state)
    return UnfinishedRound(record, products), after


def _client_states(updates: dict[int, Update]) -> State:
    """The clients' states, stacked by name; clients without samples, which keep less, are left out."""
    states: list[State] = [update.state for update in updates.values()]
    names = max(states, key=len, default={}).keys()
    if not names:
        return {}
    ids = [client for client, update in updates.items() if update.state.keys() == names]  # read states are in any order
    rows = {name: row_matrix([updates[client].state[name] for client in ids]) for name in names}
    return {"ids": torch.tensor(ids, dtype=torch.int64), **rows}


def _unequal(experiment: Experiment, group: Cohort, lost: np.ndarray) -> State:
    """What is unequal of the clients: steps (m,), start_round (m,), and ids that stopped, where settings make it so."""
    unequal = {"steps": group.steps} if experiment.clients.work != (1.0, 1.0) else {}
    unequal |= {"start_round": group.index - group.late} if experiment.clients.late else {}
    return unequal | ({"stopped": torch.from_numpy(lost)} if len(lost) else {})


def _metrics(
    setting: Setting, end: Tensor, buffers: Tensor, after: Server, held_out: list[np.ndarray]
) -> dict[str, float]:
    """Test metrics of the new global model, and those of the method, in rounds that evaluate; none if not finite."""
    experiment, index = setting.experiment, after.next - 1
    evaluated = index == experiment.rounds - 1 or index % experiment.evaluate_every == 0
    if not evaluated or not bool(torch.isfinite(end).all()):
        return {}
    with whole_products():
        model = end.to(setting.device), buffers.to(setting.device)
        metrics = model_metrics(setting.task, *model, workers=setting.evaluators)
        metrics["accuracy"] = 1 - metrics["error"]
        return metrics | experiment.method.measured(setting, end, after.clients, held_out)


def _empty(index: int, start: Tensor, buffers: Tensor, excluded: Tensor) -> Round:
    none = torch.zeros(0, dtype=torch.int64)
    return Round(
        index=index,
        ids=none,
        sizes=none,
        weights=torch.zeros(0, dtype=torch.float64),
        gram=gram(start, torch.zeros_like(start), torch.zeros_like(start), torch.zeros(0, len(start))),
        start=start,
        end=start.clone(),
        clients=torch.zeros(0, len(start)),
        start_buffers=buffers,
        end_buffers=buffers,
        client_buffers=torch.zeros(0, len(buffers)),
        extras={"excluded": excluded},
    )
