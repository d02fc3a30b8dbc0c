"""The clients of a round with their data, what they receive and their state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from drift.config.method import Method, Setting, State
from drift.config.random_keys import cohort
from drift.training.client import Client
from drift.training.data import Data, client_samples
from drift.training.server import Server
from drift.training.transfer import to_device


def clients(
    setting: Setting,
    parts: Sequence[np.ndarray],
    held_out: Sequence[np.ndarray],
    server: Server,
    start: Tensor,
    ids: np.ndarray,
) -> Iterator[Client]:
    """Clients of the server's next round in the order of `ids`, each created when iterated.

    Args:
        parts, held: Sample numbers (into train) that each of the K clients trains on, and that it holds out.
        start: What the clients receive, shape (d,).
    """
    experiment, method = setting.experiment, setting.experiment.method
    local = method.schedule(experiment.local, server.next, experiment.rounds)
    train = setting.task.samples["train"]
    here = (
        Client(
            id=client,
            index=server.next,
            seed=experiment.seed,
            samples=train[torch.from_numpy(parts[client])],
            start=start,
            buffers=server.buffers,
            local=local,
            flat=setting.flat,
            held_out=train[torch.from_numpy(held_out[client])],
            state=server.clients.get(client, {}),
            server=sent(method, server),
        )
        for client in ids.tolist()
    )
    return (to_device(client, setting.device, setting.flat) for client in here)


def first_cohort(setting: Setting, data: Data, server: Server) -> list[Client]:
    """The clients of the server's next round, ready to train."""
    experiment, index = setting.experiment, server.next
    start = experiment.method.broadcast(server.state, server.theta, index)
    ids = cohort(experiment.seed, index, experiment.clients.number, experiment.clients.per_round)
    return list(clients(setting, *client_samples(experiment, data, index), server, start, ids))


def sent(method: Method, server: Server) -> State:
    """The part of the server's state that clients receive."""
    return {name: server.state[name] for name in method.sends if name in server.state}
