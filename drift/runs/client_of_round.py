"""Clients of a recorded round as they were before local training, with their state; and what they returned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from drift.config.external_run import NOT_KNOWN, ExternalMethod
from drift.config.method_values import Cohort, State
from drift.store.round_record import Round
from drift.store.row_matrices import release
from drift.training.client import Client
from drift.training.data import client_samples
from drift.training.server import Server, clients
from drift.training.unequal_clients import rounds_late
from landscape.model.mapped_files import is_mapped

if TYPE_CHECKING:
    from drift.runs.run import Run


def recorded_client(run: Run, index: int, client: int, replicate: int = 0) -> Client:
    """Client `client` of round `index`, ready to train again; replicate 0 repeats the recorded training.

    Raises:
        LookupError: If the round has no stored start, or the state of the client or local settings are not recorded.
    """
    return replace(next(recorded_clients(run, index, [client])), replicate=replicate)


def recorded_clients(run: Run, index: int, ids: Sequence[int]) -> Iterator[Client]:
    """Clients `ids` of round `index` as `recorded_client` returns each; the round is read once."""
    require_known_training(run)
    record, experiment = run.round(index), run.experiment
    index, start = record.index, record.kept("start")  # index -1 means the last
    keeps = run.method.stateful or experiment.local.persist_optimizer
    states = {client: client_state(run, index, client) for client in ids} if keeps else {}
    past = past_starts(run, index, max(rounds_late(experiment, index, client) for client in ids))
    server = Server(start, record.start_buffers, start, record.sent, states, index, past)
    return clients(run.setting, *client_samples(experiment, run.dataset, index), server, start, np.array(ids))


def require_known_training(run: Run) -> None:
    """Raise LookupError for a run of another program whose method or local settings are not known."""
    if isinstance(run.method, ExternalMethod) or "local settings" in run.about.get("unknown", ()):
        raise LookupError(f"{NOT_KNOWN} (fedscape import CKPT --set method=fedavg local.lr=0.1 states them).")


def past_starts(run: Run, index: int, late: int) -> dict[int, tuple[Tensor, Tensor]]:
    """Start (d,) and buffers (b,) of the `late` rounds before round `index`, by round.

    Raises:
        LookupError: If one kept no start.
    """
    records = [run.round(earlier) for earlier in range(max(0, index - late), index)]
    return {record.index: (record.kept("start"), record.start_buffers) for record in records}


def recorded_cohort(run: Run, record: Round, theta: Tensor) -> Cohort:
    """The cohort of a round that kept its clients, of a server with model `theta` (d,); unknown steps are -1."""
    return Cohort(
        index=record.index,
        theta=theta,
        start=record.kept("start"),
        ids=record.ids,
        sizes=record.sizes,
        weights=run.experiment.cohort_weights(record.sizes),
        clients=record.kept("clients"),
        steps=record.extras.get("steps", torch.full_like(record.sizes, -1)),
        buffers=record.client_buffers,
        late=record.index - record.extras.get("start_round", torch.full_like(record.sizes, record.index)),
    )


def client_state(run: Run, index: int, client: int) -> State:
    """State of a client at the start of round `index`: as it was after its last training; empty before the first one.

    Raises:
        LookupError: If that round did not record the state of its clients.
    """
    for earlier in reversed([number for number in run.rounds() if number < index]):
        if client not in run.trained(earlier):
            continue
        if earlier not in run.kept("clients"):
            raise LookupError(
                f"client {client} trained in round {earlier} of run {run.name}, which did not keep its clients' state; "
                "train with --set keep.clients=all."
            )
        states = run.round(earlier).carried
        rows = (states["ids"] == client).nonzero().flatten().tolist() if states else []
        if rows:
            return {name: _in_memory(value, rows[0]) for name, value in states.items() if name != "ids"}
    return {}


def _in_memory(values: Tensor, row: int) -> Tensor:
    """A row of values; a copy if they lie in a mapped file."""
    if not is_mapped(values):
        return values[row]
    copy = values[row].clone()
    release(values)
    return copy
