"""Clients of a recorded round as they were before local training, with their state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from drift.config.method import State
from drift.training.client import Client
from drift.training.data import client_samples

if TYPE_CHECKING:
    from drift.runs.run import Run


def recorded_client(run: Run, index: int, client: int, replicate: int = 0) -> Client:
    """Client `client` of round `index`, ready to train again; replicate 0 repeats the recorded training.

    Raises:
        LookupError: If the round has no stored start, or the state of the client was not recorded.
    """
    record, experiment = run.round(index), run.experiment
    index = record.index  # -1 means the last
    start, train = record.kept("start"), run.task.samples["train"]
    parts, held_out = client_samples(experiment, run.dataset, index)
    return Client(
        id=client,
        index=index,
        seed=experiment.seed,
        samples=train[torch.from_numpy(parts[client])],
        start=start,
        buffers=record.start_buffers,
        local=run.method.schedule(experiment.local, index, experiment.rounds),
        flat=run.task.flat(start),
        held_out=train[torch.from_numpy(held_out[client])],
        state=client_state(run, index, client) if run.method.stateful or experiment.local.persist_optimizer else {},
        server=record.sent,
        replicate=replicate,
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
            return {name: value[rows[0]] for name, value in states.items() if name != "ids"}
    return {}
