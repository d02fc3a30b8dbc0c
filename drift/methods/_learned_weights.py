"""Aggregation weights learned by gradient descent on a few samples: shrink times shares, w = gamma sum_i lambda_i w_i.

The aggregate is linear in the clients, so one backward pass at w gives q = dL/dw, and the gradient with respect to
all m + 1 weights is m + 1 inner products with q; no forward pass through a computed model is needed.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

import torch
from torch import Tensor

from drift.store.column_blocks import Updates
from landscape.model.adam import Adam
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples

Base = Literal["exponential", "quadratic"]
Learns = Literal["both", "shrink", "shares"]


def initial(base: Base, shares: Tensor) -> tuple[Tensor, Tensor]:
    """Free parameters s () and x (m,) at which gamma is 1 and lambda equals positive `shares` (m,)."""
    if base == "exponential":
        return torch.zeros_like(shares[0]), shares.log()
    return torch.ones_like(shares[0]), shares.sqrt()


def factor_and_shares(base: Base, s: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """gamma () and lambda (m,), which sums to 1.

    Exponential: gamma = exp(s), lambda = softmax(x). Quadratic: gamma = s^2, lambda_i = x_i^2 / sum_j x_j^2.

    Source: FedLAW, section 6.
    """
    if base == "exponential":
        return s.exp(), x.softmax(0)
    return s.square(), x.square() / x.square().sum()


def slopes(base: Base, s: Tensor, x: Tensor, mean: Tensor, products: Tensor) -> tuple[Tensor, Tensor]:
    """dL/ds () and dL/dx (m,) from inner products with q = dL/dw at w = gamma wbar.

    Exponential: gamma <q, wbar> and gamma lambda_i <q, w_i - wbar>. Quadratic: 2 s <q, wbar> and
    gamma (2 x_i / sum_j x_j^2) <q, w_i - wbar>.

    Args:
        mean: <q, wbar>, shape ().
        each: <q, w_i>, up to a number common to all clients, shape (m,).
    """
    shrink, shares = factor_and_shares(base, s, x)
    spread = products - shares @ products
    if base == "exponential":
        return shrink * mean, shrink * shares * spread
    return 2 * s * mean, shrink * (2 * x / x.square().sum()) * spread


@dataclass(frozen=True)
class Aggregate:
    """The mean loss of samples at gamma (start + sum_i lambda_i delta_i).

    Args:
        flat: Workspace; its theta and gradient are overwritten.
        updates: Of the m clients, from the model (d,) that they started from.
    """

    flat: Flat
    updates: Updates

    def gradient(self, shrink: Tensor, shares: Tensor, samples: Samples) -> tuple[float, Tensor, Tensor]:
        """Loss in nats, <q, wbar> () and <q, delta_i> (m,), the latter two float64.

        Inner products go over updates rather than models: those are small, so nothing cancels in float32.
        """
        flat, updates = self.flat, self.updates
        updates.add_weighted(shares, flat.theta).mul_(float(shrink))
        loss = float(flat.gradient(samples))
        products = updates.products(flat.grad).to(shares)
        return loss, torch.dot(updates.start, flat.grad).to(shares) + shares @ products, products


@dataclass(frozen=True)
class Schedule:
    """How the weights are learned: Adam, its rate times 0.5 every `halve_every` epochs.

    With `average` the rate falls along a cosine of 100 epochs for `average_after` epochs, then goes within 10 epochs
    to `average_lr`, and the running mean of x is taken once per epoch.
    """

    lr: float
    betas: tuple[float, float]
    halve_every: int
    average_lr: float
    average_after: int

    def rates(self, average: bool) -> Iterator[float]:
        """The rate of each epoch: bit by bit those of torch's StepLR, or CosineAnnealingLR and then SWALR."""
        rate = self.lr
        for epoch in count(1):
            yield rate
            if not average:
                rate *= 0.5 if epoch % self.halve_every == 0 else 1.0
            elif epoch <= self.average_after:
                rate = self._along_cosine(rate, epoch)
            else:
                progress = (min(1.0, (epoch - self.average_after - back) / ANNEALED) for back in (1, 0))
                begun, now = ((1 - math.cos(math.pi * fraction)) / 2 for fraction in progress)
                first = self.average_lr if begun == 1 else (rate - begun * self.average_lr) / (1 - begun)
                rate = self.average_lr * now + first * (1 - now)

    def _along_cosine(self, rate: float, epoch: int) -> float:
        """The rate after this epoch of the cosine, from that in it."""
        if (epoch - 1 - COSINE) % (2 * COSINE) == 0:
            return rate + self.lr * (1 - math.cos(math.pi / COSINE)) / 2
        return (1 + math.cos(math.pi * epoch / COSINE)) / (1 + math.cos(math.pi * (epoch - 1) / COSINE)) * rate


COSINE, ANNEALED = 100, 10
"""Epochs of half a cosine, and until the constant rate is reached."""


@dataclass
class Learner:
    """Free parameters s (), x (m,) of the weights while they are learned, and one row of history per epoch."""

    base: Base
    s: Tensor
    x: Tensor
    schedule: Schedule
    shrinks: list[Tensor] = field(default_factory=list)
    shares: list[Tensor] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    def factor_and_shares(self) -> tuple[Tensor, Tensor]:
        """gamma () and lambda (m,) as learned so far."""
        return factor_and_shares(self.base, self.s, self.x)

    def learn(
        self,
        learns: Learns,
        epochs: int,
        objective: Aggregate,
        batches: Callable[[], Iterable[Samples]],
        *,
        average: bool = False,
    ) -> None:
        """Train s, x or both for `epochs` passes over what `batches` gives; afterwards x is its mean if averaged."""
        learned = {"both": (self.s, self.x), "shrink": (self.s,), "shares": (self.x,)}[learns]
        optimizer, rates = Adam(learned, self.schedule.betas), self.schedule.rates(average)
        averaged: list[Tensor] = []
        for epoch, rate in zip(range(epochs), rates, strict=False):
            total, samples = 0.0, 0
            for batch in batches():
                loss, mean, products = objective.gradient(*self.factor_and_shares(), batch)
                s, x = slopes(self.base, self.s, self.x, mean, products)
                optimizer.step({"both": (s, x), "shrink": (s,), "shares": (x,)}[learns], rate)
                total, samples = total + loss * len(batch), samples + len(batch)
            if average and epoch >= self.schedule.average_after:
                averaged.append(self.x.clone())
            self._note(total / samples if samples else float("nan"))
        if averaged:
            self.x.copy_(torch.stack(averaged).mean(0))

    def history(self) -> dict[str, Tensor]:
        """gamma (E,), lambda (E, m) and mean loss in nats (E,) after each epoch, by name."""
        losses = torch.tensor(self.losses, dtype=torch.float64)
        return {"gamma": torch.stack(self.shrinks), "lambda": torch.stack(self.shares), "proxy_loss": losses}

    def _note(self, loss: float) -> None:
        shrink, shares = self.factor_and_shares()
        self.shrinks.append(shrink)
        self.shares.append(shares)
        self.losses.append(loss)
