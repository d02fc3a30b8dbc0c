"""The server's state from round to round, and the clients of its next round with what they receive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from drift.config.method import Method
from drift.config.method_values import Setting, State
from drift.config.random_keys import cohort
from drift.store.server_state import ClientStates, StoredState
from drift.training.client import Client, to_device
from drift.training.data import Data, client_samples


@dataclass(frozen=True)
class Server:
    """The server's state from round to round.

    Args:
        theta, buffers: Global model (d,) and floating buffers (b,).
        previous: Mean client update of the last round, client minus start, shape (d,).
        state: The method's server state.
        clients: What each client keeps, by client id.
        next: Index of the next round.
    """

    theta: Tensor
    buffers: Tensor
    previous: Tensor
    state: State
    clients: Mapping[int, State]
    next: int = 0

    def tensors(self) -> State:
        """Named tensors of everything but the clients' states."""
        tensors = {"theta": self.theta, "buffers": self.buffers, "previous": self.previous}
        return tensors | {f"server.{name}": value for name, value in self.state.items()}

    @classmethod
    def from_stored(cls, stored: StoredState) -> Server:
        """The server of a stored state."""
        tensors, clients, following = stored
        state = {name.removeprefix("server."): value for name, value in tensors.items() if name.startswith("server.")}
        return cls(tensors["theta"], tensors["buffers"], tensors["previous"], state, clients, following)

    @classmethod
    def fresh(cls, setting: Setting) -> Server:
        """The server before round 0: the initial model, and the method's initial state."""
        theta, method = setting.task.theta, setting.experiment.method
        state = method.initial(setting, theta)
        return cls(theta, setting.task.buffers.to(theta), torch.zeros_like(theta), state, ClientStates())


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
