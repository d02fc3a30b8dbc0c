"""The server's state from round to round, and the clients of its next round with what they receive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.method import Method
from drift.config.method_values import Setting, State
from drift.config.random_keys import cohort
from drift.store.server_state import ClientStates, StoredState
from drift.training.client import Client, steps, to_device
from drift.training.data import Data, client_samples
from drift.training.unequal_clients import rounds_late, share_of_steps

Past = Mapping[int, tuple[Tensor, Tensor]]
"""Start (d,) and floating buffers (b,) by round."""


@dataclass(frozen=True)
class Server:
    """The server's state from round to round.

    Args:
        theta, buffers: Global model (d,) and floating buffers (b,).
        previous: Mean client update of the last round, client minus start, shape (d,).
        state: The method's server state.
        clients: What each client keeps, by client id.
        next: Index of the next round.
        past: Start (d,) and buffers (b,) of earlier rounds, from which late clients start; None: no client is late.
    """

    theta: Tensor
    buffers: Tensor
    previous: Tensor
    state: State
    clients: Mapping[int, State]
    next: int = 0
    past: Past | None = None

    def tensors(self) -> State:
        """Named tensors of everything but the clients' states."""
        tensors = {"theta": self.theta, "buffers": self.buffers, "previous": self.previous}
        for index, (start, buffers) in (self.past or {}).items():
            tensors |= {f"past.{index}": start, f"past_buffers.{index}": buffers}
        return tensors | {f"server.{name}": value for name, value in self.state.items()}

    @classmethod
    def from_stored(cls, stored: StoredState) -> Server:
        """The server of a stored state."""
        tensors, clients, following = stored
        state = {name.removeprefix("server."): value for name, value in tensors.items() if name.startswith("server.")}
        earlier = sorted(int(name.removeprefix("past.")) for name in tensors if name.startswith("past."))
        past = {index: (tensors[f"past.{index}"], tensors[f"past_buffers.{index}"]) for index in earlier}
        return cls(tensors["theta"], tensors["buffers"], tensors["previous"], state, clients, following, past)

    @classmethod
    def fresh(cls, setting: Setting) -> Server:
        """The server before round 0: the initial model, and the method's initial state."""
        theta, method = setting.task.theta, setting.experiment.method
        state = method.initial(setting, theta)
        return cls(theta, setting.task.buffers.to(theta), torch.zeros_like(theta), state, ClientStates(), past={})


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
    unequal = (_unequal(client, experiment, server.past) for client in here)
    return (to_device(client, setting.device, setting.flat) for client in unequal)


def _unequal(client: Client, experiment: Experiment, past: Past | None) -> Client:
    """The client with its own number of steps, and at the model of an earlier round if it is late."""
    if experiment.clients.work != (1.0, 1.0) and (planned := steps(client)):
        number = max(1, round(planned * share_of_steps(experiment, client.index, client.id)))
        client = replace(client, local=client.local.model_copy(update={"steps": number}))
    late = 0 if past is None else rounds_late(experiment, client.index, client.id)
    if not late:
        return client
    start, buffers = (past or {})[client.index - late]
    return replace(client, start=start, buffers=buffers, present=client.start)


def first_cohort(setting: Setting, data: Data, server: Server) -> list[Client]:
    """The clients of the server's next round, ready to train."""
    experiment, index = setting.experiment, server.next
    start = experiment.method.broadcast(server.state, server.theta, index)
    ids = cohort(experiment.seed, index, experiment.clients.number, experiment.clients.per_round)
    return list(clients(setting, *client_samples(experiment, data, index), server, start, ids))


def sent(method: Method, server: Server) -> State:
    """The part of the server's state that clients receive."""
    return {name: server.state[name] for name in method.sends if name in server.state}
