"""The server at the start of a recorded round, with its state and that of its clients."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import torch

from drift.config.cohort_weights import cohort_weights
from drift.config.method import Cohort, Setting, State
from drift.runs.client_of_round import client_state
from drift.runs.run import Run
from drift.store.round_record import Round
from drift.training.server import Server

NEAR = 1e-5
"""Largest difference of a model that was aggregated again from the recorded one, over the largest entry."""


def remembers(run: Run) -> bool:
    """Whether server or clients have a state besides the model."""
    server = Server.from_tensors(*run.state())
    return bool(server.state or server.clients)


@lru_cache(maxsize=8)
def server_before(run: Run, first: int) -> tuple[Server, bool]:
    """The server before round `first`, and whether its state and that of its clients are as they were.

    Before round 0 it is fresh, after the last round it is stored. In between, the record holds the model, what clients
    receive beside it, and their state. The rest of the server's state, such as the moments of FedAdam, follows from
    aggregating the recorded clients of all earlier rounds again, without training; it counts only if every global
    model is as recorded. If that is impossible (clients were not kept, or the server used what is not recorded) the
    state is new.

    Raises:
        LookupError: If the round kept no start.
    """
    setting = run.setting
    if first == 0:
        return Server.fresh(setting), True
    if first == run.committed:
        return Server.from_tensors(*run.state()), True
    record, method = run.round(first), run.method
    anew = replace(Server.fresh(setting), theta=record.kept("start"), buffers=record.start_buffers, next=first)
    anew = replace(anew, state=method.initial(setting, anew.theta))
    last = Server.from_tensors(*run.state())
    if not last.state and not last.clients:
        return anew, True
    state = record.sent if set(record.sent) >= set(last.state) else _aggregated(run, setting, first)
    try:
        clients = _carried(run, first)
    except LookupError:
        return anew, False
    if state is None:
        return replace(anew, clients=clients), False
    return replace(anew, theta=_theta(run, first), state=state, clients=clients), True


def _theta(run: Run, first: int) -> torch.Tensor:
    """The server's own model before a round; the model that clients received may be ahead of it."""
    before = run.round(first - 1)
    return run.round(first).kept("start") if before.end is None else before.end


def _carried(run: Run, first: int) -> dict[int, State]:
    """State of each client before a round."""
    if not (run.method.stateful or run.experiment.local.persist_optimizer):
        return {}
    clients = ((client, client_state(run, first, client)) for client in range(run.experiment.clients.number))
    return {client: state for client, state in clients if state}


def _aggregated(run: Run, setting: Setting, first: int) -> State | None:
    """The server's state before a round, from the recorded clients of all rounds before; None where that fails."""
    state = run.method.initial(setting, setting.task.theta)
    for index in range(first):
        if index not in run.rounds():
            return None
        record = run.round(index)
        if record.clients is None or record.end is None or record.start is None:
            return None
        theta = setting.task.theta if index == 0 else _theta(run, index)
        try:
            outcome = run.method.aggregate(setting, state, _cohort(run, record, theta))
        except KeyError:  # of a client report, which is not recorded
            return None
        if not torch.allclose(outcome.end, record.end, rtol=0, atol=NEAR * float(record.end.abs().max())):
            return None
        state = outcome.state
    return state


def _cohort(run: Run, record: Round, theta: torch.Tensor) -> Cohort:
    """A recorded cohort; its numbers of steps are not recorded."""
    return Cohort(
        index=record.index,
        theta=theta,
        start=record.kept("start"),
        ids=record.ids,
        sizes=record.sizes,
        weights=cohort_weights(run.experiment, record.sizes),
        clients=record.kept("clients"),
        steps=torch.full_like(record.sizes, -1),
        buffers=record.client_buffers,
    )
