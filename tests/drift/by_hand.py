"""Two clients of 2 and 7 samples in float64, and their training written out in numpy: the oracle of every method.

The model is theta = (B, W, b): features h = B x of two inputs, logits W h + b of three classes, cross-entropy. Nothing
here but `played` calls the project; random draws that a method makes are taken from its own generators, as dice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from drift.simulation.one_round import run_round
from drift.training.data import Data
from drift.training.server import Server
from landscape.model.samples import Samples
from landscape.model.task import Task
from tests.drift import hand

Array = NDArray[np.float64]

CLASSES, BODY = 3, 4
"""Logits, and numbers in B: theta[:BODY] is the body, theta[BODY:] the head."""

LR, STEPS = 0.5, 2
"""Local rate, and local epochs; a batch is a client's whole data, so an epoch is a step."""

_DRAWN = np.random.default_rng(5)
X: Array = _DRAWN.normal(size=(17, 2)) + 0.2
Y = np.array([0, 1, 2, 0, 1, 2, 2, 0, 1, 1, 0, 2, 0, 1, 2, 0, 1])


class Part(NamedTuple):
    """Inputs (n, 2) and classes (n,)."""

    x: Array
    y: NDArray[np.int64]


_PARTS, _HELD, _PROXY = ([0, 1], [*range(2, 9)]), ([9], [10, 11]), [*range(12, 17)]
CLIENTS = [Part(X[rows], Y[rows]) for rows in _PARTS]
HELD = [Part(X[rows], Y[rows]) for rows in _HELD]
PROXY = Part(X[_PROXY], Y[_PROXY])

P = np.array([2, 7]) / 9
"""Weights of the two clients; P_HELD where they hold out 1 and 2 samples more."""
P_HELD = np.array([3, 9]) / 12


@dataclass(frozen=True)
class Played:
    """Global models w_0, w_1, .. (d,), buffers (b,) likewise, and the servers that hold them."""

    ends: list[Array]
    buffers: list[Array]
    servers: list[Server]


def played(
    method: dict[str, Any] | str,
    rounds: int = 2,
    *,
    held: bool = False,
    model: nn.Module | None = None,
    engine: str = "serial",
    **local: Any,
) -> Played:
    """Rounds of a method by the project, both clients in each; the other arguments are those of `prepared`."""
    setting, data = prepared(method, rounds, held=held, model=model, engine=engine, **local)
    servers = [Server.fresh(setting)]
    for _ in range(rounds):
        servers.append(run_round(setting, data, servers[-1])[1])
    return Played([one.theta.numpy() for one in servers], [one.buffers.numpy() for one in servers], servers)


def prepared(
    method: dict[str, Any] | str,
    rounds: int = 2,
    *,
    held: bool = False,
    model: nn.Module | None = None,
    engine: str = "serial",
    **local: Any,
) -> tuple[hand.Setting, Data]:
    """Setting and data of such rounds.

    Args:
        held: Clients hold out `HELD`.
        model: In place of the linear body and head.
        engine: What trains the clients.
        local: Local settings other than SGD without momentum, `STEPS` epochs of one batch and the rate `LR`.
    """
    settings = {"lr": LR, "momentum": 0.0, "epochs": STEPS, "batch": 50, **local}
    experiment = hand.experiment(
        method,
        rounds=rounds,
        number=2,
        local=settings,
        proxy={"per_class": 1},
        clients={"valid_ratio": 0.2} if held else {},
    )
    x, y = torch.from_numpy(X), torch.from_numpy(Y)
    samples = {"train": Samples(x, y), "test": Samples(x, y)}
    task = Task(model or linear_model(), samples)
    setting = hand.Setting(task, experiment, Samples(x[_PROXY], y[_PROXY]), engine)
    nothing = [np.zeros(0, np.int64)] * 2
    parts, outs = ([np.array(rows) for rows in chosen] for chosen in (_PARTS, _HELD))
    return setting, Data(samples, tuple("abc"), (2,), "", parts, outs if held else nothing)


def linear_model() -> nn.Module:
    """A linear body and a linear head, 13 parameters in float64."""
    model = nn.Sequential()
    model.add_module("body", nn.Linear(2, 2, bias=False, dtype=torch.float64))
    model.add_module("head", nn.Linear(2, CLASSES, dtype=torch.float64))
    drawn = hand.random(BODY + 9, seed=3) * 0.7
    torch.nn.utils.vector_to_parameters(drawn, model.parameters())
    return model


def features(theta: Array, x: Array) -> Array:
    """h (n, 2)."""
    return x @ theta[:BODY].reshape(2, 2).T


def logits(theta: Array, x: Array) -> Array:
    """Logits (n, C)."""
    return features(theta, x) @ theta[BODY:-CLASSES].reshape(CLASSES, 2).T + theta[-CLASSES:]


def softmax(values: Array) -> Array:
    """Probabilities (n, C)."""
    raised = np.exp(values - values.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


def loss(theta: Array, part: Part) -> float:
    """Mean cross-entropy."""
    return float(-np.log(softmax(logits(theta, part.x))[np.arange(len(part.y)), part.y]).mean())


def wrong(theta: Array, part: Part) -> float:
    """Share of wrong classes."""
    return float((logits(theta, part.x).argmax(1) != part.y).mean())


def back(theta: Array, x: Array, errors: Array, also: Array | float = 0.0) -> Array:
    """Gradient (d,) from dL/dlogits (n, C), and from a further dL/dh (n, 2)."""
    head = theta[BODY:-CLASSES].reshape(CLASSES, 2)
    body = (errors @ head + also).T @ x
    return np.concatenate([body.ravel(), (errors.T @ features(theta, x)).ravel(), errors.sum(0)])


def errors(theta: Array, part: Part) -> Array:
    """dL/dlogits (n, C) of the mean cross-entropy: (p - onehot) / n."""
    return (softmax(logits(theta, part.x)) - np.eye(CLASSES)[part.y]) / len(part.y)


def gradient(theta: Array, part: Part) -> Array:
    """Gradient (d,) of the mean cross-entropy."""
    return back(theta, part.x, errors(theta, part))


def descend(start: Array, slope: Callable[..., Array], *given: Any, steps: int = STEPS, lr: float = LR) -> Array:
    """The model after `steps` steps w <- w - lr slope(w, *given)."""
    theta = start
    for _ in range(steps):
        theta = theta - lr * slope(theta, *given)
    return theta


def trained(start: Array, part: Part, lr: float = LR) -> Array:
    """The model after plain local training."""
    return descend(start, gradient, part, lr=lr)


def mean(models: Sequence[Array], weights: Array = P) -> Array:
    """sum_k p_k w_k."""
    return weights @ np.stack(models)


class Adam:
    """Adam, one step at a time."""

    def __init__(self, lr: float, betas: tuple[float, float]) -> None:
        self.lr, self.betas, self.first, self.second, self.count = lr, betas, 0.0, 0.0, 0

    def step(self, theta: Array, slope: Array) -> Array:
        """The next theta."""
        one, two = self.betas
        self.count += 1
        self.first = one * self.first + (1 - one) * slope
        self.second = two * self.second + (1 - two) * slope**2
        size = np.sqrt(self.second / (1 - two**self.count)) + 1e-8
        return theta - self.lr * self.first / (1 - one**self.count) / size


RTOL, ATOL = 1e-9, 1e-11
"""How near a model is to the one written out, entry by entry."""


def close(found: Array, expected: Array) -> None:
    """Equal to rounding, and finite."""
    np.testing.assert_allclose(found, expected, rtol=RTOL, atol=ATOL)
