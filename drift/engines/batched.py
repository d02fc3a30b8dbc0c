"""The clients of a cohort trained at once: step s of all of them is one computation over rows, one row a client.

Every client has the minibatches, in the order, that `serial` gives it, so that results are those of `serial` but for
rounding. Clients lie in the order of their numbers of steps; those that are done drop out at the end. Minibatches of
unequal size are padded with samples of weight 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from drift import optimizer
from drift.client import Client, Update
from drift.correction import stacked
from drift.method import Method, State
from landscape.rows import Rows, rows
from landscape.samples import Samples, leaves, mapped
from landscape.scratch import scratch

BUDGET = {"cpu": 2**29, "cuda": 2**34}
"""Bytes of models, gradients and activations that are trained at once; the rest of a cohort follows."""

STATES = 6
"""Vectors (d,) of a client in training: model, gradient, moments, what corrects them."""


def train(method: Method, clients: Iterable[Client]) -> tuple[list[Update], float]:
    """Updates in the order of the clients, and the useful fraction of the computed samples, 0-1; NaN without any."""
    ready = [method.prepare(client) for client in clients]
    plans = [_plan(client) for client in ready]
    order = sorted(range(len(ready)), key=lambda place: -len(plans[place].sizes))
    found: dict[int, Update] = {}
    useful = computed = 0
    if ready:
        made = rows(ready[0].flat)
        size = chunk(ready[0], made)
        for begin in range(0, len(order), size):
            places = order[begin : begin + size]
            group = _Group([ready[place] for place in places], [plans[place] for place in places], method)
            found |= zip(places, group.train(made), strict=True)
            useful, computed = useful + group.useful, computed + group.computed
    updates = [method.finish(client, found[place]) for place, client in enumerate(ready)]
    return updates, useful / computed if computed else float("nan")


def chunk(client: Client, made: Rows) -> int:
    """How many clients like this one are trained at once; it depends on nothing that changes during a run."""
    values = STATES * len(client.start) + client.local.batch * made.held(client.samples.inputs)
    return max(1, BUDGET[client.start.device.type] // (client.start.element_size() * values))


@dataclass(frozen=True)
class Plan:
    """A client's minibatches: sample numbers one after the other (N,), and how many each step takes (S,)."""

    numbers: np.ndarray
    sizes: np.ndarray


def _plan(client: Client) -> Plan:
    orders = [order.numpy() for order in client.orders()]
    if not orders:
        return Plan(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    sizes = [_sizes(len(order), client.local.batch) for order in orders]
    return Plan(np.concatenate(orders), np.concatenate(sizes))


@lru_cache(maxsize=4096)
def _sizes(count: int, batch: int) -> np.ndarray:
    return np.minimum(batch, count - np.arange(0, count, batch))


class _Group:
    """Clients that are trained at once, those with most steps first."""

    def __init__(self, clients: list[Client], plans: list[Plan], method: Method) -> None:
        self.clients, self.plans = clients, plans
        first = clients[0]
        self.local, self.device = first.local, first.start.device
        same = all(client.start is first.start for client in clients)
        shape = (len(clients), len(first.start))
        self.thetas, self.grads = (scratch(f"batched {name}", shape, first.start) for name in ("thetas", "grads"))
        self.thetas.copy_(first.start if same else torch.stack([client.start for client in clients]))
        self.correction = stacked([method.correction(client) for client in clients])
        self.held = [optimizer.restored(client.state, self.local) for client in clients]
        self.momentum = self._momentum()
        self.steps = np.array([len(plan.sizes) for plan in plans])
        self.losses = torch.zeros(len(clients), dtype=torch.float64, device=self.device)
        self.useful = self.computed = 0

    def train(self, made: Rows) -> list[Update]:
        """One update a client."""
        samples = joined([client.samples for client in self.clients])
        table, sizes = self._tables()
        counts = torch.from_numpy(sizes)[:, :, None].to(self.device)
        weights = (torch.arange(table.shape[2], device=self.device) < counts) / counts.clamp(min=1).to(self.thetas)
        numbers = torch.from_numpy(table).to(self.device)
        actives, widths = (sizes > 0).sum(1).tolist(), sizes.max(1, initial=0).tolist()
        self.useful, self.computed = int(sizes.sum()), int(np.dot(actives, widths))
        for step, (active, width) in enumerate(zip(actives, widths, strict=True)):
            batch = samples[numbers[step, :active, :width].reshape(-1)]
            placed = partial(_rows, active, width)
            thetas, grads = self.thetas[:active], self.grads[:active]
            share = weights[step, :active, :width]
            losses = made.gradient(thetas, mapped(placed, batch.inputs), placed(batch.targets), share, grads)
            self.losses[:active].add_(losses)
            self._step(thetas, grads)
        means = (self.losses.cpu() / torch.from_numpy(self.steps)).tolist()  # 0 / 0 is NaN
        return [self._update(place, means[place]) for place in range(len(self.clients))]

    def _step(self, thetas: Tensor, grads: Tensor) -> None:
        active = len(thetas)
        if self.correction is not None:
            self.correction.first(active)(grads, thetas)
        if self.local.optimizer == "adam":
            for place in range(active):
                self.held[place] = self.held[place] or optimizer.moments(thetas[place])
            optimizer.adam(list(thetas), list(grads), self.held[:active], self.local, 1.0)
        else:
            buffer = None if self.momentum is None else self.momentum[:active]
            optimizer.sgd(thetas, grads, buffer, self.local, 1.0)

    def _momentum(self) -> Tensor | None:
        """Momentum buffers (m, d); from 0 the first step is that of a fresh optimiser."""
        if self.local.optimizer == "adam" or self.local.momentum == 0:
            return None
        found = scratch("batched momentum", tuple(self.thetas.shape), self.thetas).zero_()
        for row, held in zip(found, self.held, strict=True):
            if held:
                row.copy_(held["momentum_buffer"])
        return found

    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers (S, m, B) into the joined samples, and sizes (S, m), 0 where a client has no such step.

        Padding repeats the client's own first sample, so that one client's data never reach another's row.
        """
        m, steps = len(self.plans), int(self.steps.max(initial=0))
        width = max((int(plan.sizes.max(initial=0)) for plan in self.plans), default=0)
        offsets = accumulate((len(client.samples) for client in self.clients), initial=0)
        table, sizes = np.zeros((steps, m, width), dtype=np.int64), np.zeros((steps, m), dtype=np.int64)
        places = np.arange(width)
        for row, (plan, offset) in enumerate(zip(self.plans, offsets, strict=False)):
            own = np.full((len(plan.sizes), width), offset, dtype=np.int64)
            own[places < plan.sizes[:, None]] = plan.numbers + offset
            table[: len(own), row], sizes[: len(own), row] = own, plan.sizes
        return table, sizes

    def _update(self, place: int, loss: float) -> Update:
        client, steps = self.clients[place], int(self.steps[place])
        held: State = self.held[place]
        if self.momentum is not None and steps:
            held = {"momentum_buffer": self.momentum[place]}
        state = {**client.state, **optimizer.kept(held, self.local)}
        return Update(self.thetas[place].clone(), client.buffers.clone(), steps, loss, state)


def _rows(active: int, width: int, leaf: Tensor) -> Tensor:
    return leaf.view(active, width, *leaf.shape[1:])


def joined(parts: Sequence[Samples]) -> Samples:
    """The samples of several clients one after the other."""
    columns = zip(*(leaves(part.inputs) for part in parts), strict=True)
    whole = iter([torch.cat(column) for column in columns])
    return Samples(mapped(lambda leaf: next(whole), parts[0].inputs), torch.cat([part.targets for part in parts]))
