"""The server's state from round to round, and its form on disk."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from drift.config.method import Setting, State


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
    clients: dict[int, State]
    next: int = 0

    def tensors(self) -> State:
        """Everything as named tensors."""
        flat = {"theta": self.theta, "buffers": self.buffers, "previous": self.previous}
        flat |= {f"server.{name}": value for name, value in self.state.items()}
        for client, state in self.clients.items():
            flat |= {f"client.{client}.{name}": value for name, value in state.items()}
        return flat

    @classmethod
    def from_tensors(cls, tensors: State, next: int) -> Server:
        """Inverse of `tensors`."""
        state = {name.removeprefix("server."): value for name, value in tensors.items() if name.startswith("server.")}
        clients: dict[int, State] = {}
        for name, value in tensors.items():
            if name.startswith("client."):
                _, client, rest = name.split(".", 2)
                clients.setdefault(int(client), {})[rest] = value
        return cls(tensors["theta"], tensors["buffers"], tensors["previous"], state, clients, next)

    @classmethod
    def fresh(cls, setting: Setting) -> Server:
        """The server before round 0: the initial model, and the method's initial state."""
        theta, method = setting.task.theta, setting.experiment.method
        return cls(theta, setting.task.buffers.to(theta), torch.zeros_like(theta), method.initial(setting, theta), {})
