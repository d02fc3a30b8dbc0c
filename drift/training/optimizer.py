"""The local optimiser on flat vectors: SGD or Adam by the functions that torch.optim itself calls."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor
from torch.optim.adam import adam as torch_adam
from torch.optim.sgd import sgd as torch_sgd

from drift.config.experiment import Local
from drift.config.method_values import State

_PREFIX = "optimizer."


class Optimizer:
    """One local training's optimiser: SGD (momentum, weight decay) or Adam on one vector (d,).

    The bits are those of `torch.optim.SGD` and `Adam` with fused=True; their functions are called directly because
    those classes load torch's compiler first, which takes longer than training a small model.
    """

    def __init__(self, theta: Tensor, grad: Tensor, local: Local) -> None:
        self.theta, self.grad, self.local = theta, grad, local
        self.moments: State = {}

    def step(self, factor: float = 1.0) -> None:
        """One step on the current gradient, at a multiple of the local rate."""
        if self.local.optimizer == "adam":
            if not self.moments:
                self.moments = zero_moments(self.theta)
            adam([self.theta], [self.grad], [self.moments], self.local, factor)
            return
        momenta = [self.moments.get("momentum_buffer")]
        sgd([self.theta], [self.grad], momenta, self.local, factor)
        if momenta[0] is not None:
            self.moments["momentum_buffer"] = momenta[0]

    def state(self) -> State:
        """Moments to keep for the client's next round; nothing unless the optimiser persists."""
        return to_state(self.moments, self.local)

    def restore(self, state: State) -> None:
        """Take up moments returned by `state`."""
        self.moments = from_state(state, self.local)


def sgd(
    thetas: list[Tensor], grads: list[Tensor], momenta: Sequence[Tensor | None], local: Local, factor: float
) -> None:
    """One SGD step in place, on tensors of any shape.

    Args:
        momenta: Buffers of their shapes; a list of None, which the first step with momentum fills; empty without
            momentum.
        factor: Multiple of the local rate.
    """
    torch_sgd(
        thetas,
        grads,
        cast(list[Tensor | None], momenta),
        fused=True,
        weight_decay=local.weight_decay,
        momentum=local.momentum,
        lr=local.lr * factor,
        dampening=0.0,
        nesterov=False,
        maximize=False,
    )


def adam(thetas: list[Tensor], grads: list[Tensor], states: list[State], local: Local, factor: float) -> None:
    """One Adam step of each model (d,) in place; each has its own moments and step count."""
    torch_adam(
        thetas,
        grads,
        [moments["exp_avg"] for moments in states],
        [moments["exp_avg_sq"] for moments in states],
        [],
        [moments["step"] for moments in states],
        fused=True,
        lr=local.lr * factor,
        beta1=local.betas[0],
        beta2=local.betas[1],
        weight_decay=local.weight_decay,
        eps=1e-8,
        amsgrad=False,
        maximize=False,
    )


def to_state(moments: State, local: Local) -> State:
    """An optimiser's moments under the names of a client's state; nothing unless the optimiser persists."""
    return {f"{_PREFIX}{name}": value.clone() for name, value in moments.items()} if local.persist_optimizer else {}


def moment_vectors(local: Local) -> int:
    """Vectors (d,) that a client keeps of a persistent optimiser between rounds."""
    if not local.persist_optimizer:
        return 0
    return 2 if local.optimizer == "adam" else int(local.momentum != 0)


def from_state(state: State, local: Local) -> State:
    """Copies of the moments in a client's state; none unless the optimiser persists."""
    moments = {name.removeprefix(_PREFIX): value.clone() for name, value in state.items() if name.startswith(_PREFIX)}
    return moments if local.persist_optimizer else {}


def zero_moments(theta: Tensor) -> State:
    """Moments of Adam before its first step."""
    step = torch.zeros((), dtype=torch.float32, device=theta.device)
    return {"step": step, "exp_avg": torch.zeros_like(theta), "exp_avg_sq": torch.zeros_like(theta)}
