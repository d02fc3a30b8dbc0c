"""Clients of a cohort trained at once: step s of all is one computation, with one row per client.

Every client has the minibatches, in the order, that `serial` gives it, so that results are those of `serial` but for
rounding. Rows are ordered by the number of steps; finished clients drop out at the end. Minibatches of
unequal size are padded with samples of weight 0.
"""

import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from drift.config.method import Method
from drift.training import optimizer
from drift.training.arrivals import as_they_are
from drift.training.client import Client, Update
from drift.training.correction import stack_corrections
from landscape.batched_training.per_model_gradients import ModelGradients, model_gradients
from landscape.batched_training.scratch_memory import scratch_buffer
from landscape.model.losses import sample_weights
from landscape.model.samples import Inputs, Samples, joined, leaves, map_leaves, with_leaves

BUDGET = {"cpu": 2**29, "cuda": 2**34}
"""Bytes of models, gradients and activations that are trained at once; the rest of a cohort follows."""

GATHERED = 2**22
"""Bytes of samples that are gathered at once, for as many steps as that."""

STATES = 6
"""Vectors (d,) of a client in training: model, gradient, moments, what corrects them."""


def train(
    method: Method, clients: Iterable[Client], receive: Callable[[int, Update], Update] = as_they_are
) -> tuple[list[Update], float]:
    """Updates in the order of the clients, and the useful fraction of the computed samples, 0-1; NaN without any.

    Args:
        receive: Takes the update of a client's place when it is trained.
    """
    arrived = list(clients)
    ready = [method.prepare(client) for client in arrived]
    minibatches = [_minibatches(client) for client in ready]
    order = sorted(range(len(ready)), key=lambda index: -len(minibatches[index].sizes))
    trained: dict[int, Update] = {}
    useful = computed = 0
    if ready:
        gradients = model_gradients(ready[0].flat)
        size = chunk(ready[0], gradients)
        for begin in range(0, len(order), size):
            indices = order[begin : begin + size]
            rows = [(ready[index], minibatches[index]) for index in indices]
            group = _Group(rows, method, gradients)
            for index, update in zip(indices, group.train(), strict=True):
                trained[index] = receive(index, arrived[index].sent(method.finish(ready[index], update)))
            useful, computed = useful + group.useful, computed + group.computed
    return [trained[index] for index in range(len(ready))], useful / computed if computed else float("nan")


def chunk(client: Client, gradients: ModelGradients) -> int:
    """Number of clients like this one to train at once; constant during a run."""
    values = STATES * len(client.start) + client.local.batch * gradients.step_values(client.samples.inputs)
    return max(1, BUDGET[client.start.device.type] // (client.start.element_size() * values))


@dataclass(frozen=True)
class Minibatches:
    """A client's minibatches: sample numbers one after the other (N,), and how many each step takes (S,)."""

    numbers: np.ndarray
    sizes: np.ndarray


def _minibatches(client: Client) -> Minibatches:
    orders = list(client.orders())
    if not orders:
        return Minibatches(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    return Minibatches(torch.cat(orders).numpy(), _sizes(tuple(map(len, orders)), client.local.batch))


@lru_cache(maxsize=4096)
def _sizes(counts: tuple[int, ...], batch: int) -> np.ndarray:
    """Sizes of the minibatches in epochs of `counts` samples."""
    return np.concatenate([np.minimum(batch, count - np.arange(0, count, batch)) for count in counts])


class _Group:
    """Clients that are trained at once, those with most steps first."""

    def __init__(self, rows: list[tuple[Client, Minibatches]], method: Method, gradients: ModelGradients) -> None:
        clients = [client for client, _ in rows]
        self.clients, self.minibatches, self.gradients = clients, [batches for _, batches in rows], gradients
        first = clients[0]
        self.local, self.device = first.local, first.start.device
        self.correction = stack_corrections([method.correction(client) for client in clients])
        self.moments = [optimizer.from_state(client.state, self.local) for client in clients]
        by_column = self.correction is None and self.local.optimizer == "sgd"  # else whole vectors are asked for
        self.columns = gradients.columns if by_column else [slice(0, len(first.start))]
        self.thetas, self.grads = self._blocks("thetas"), self._blocks("grads")
        same = all(client.start is first.start for client in clients)
        starts = first.start[None] if same else torch.stack([client.start for client in clients])
        for block, columns in zip(self.thetas, self.columns, strict=True):
            block.copy_(starts[:, columns])
        self.pinned = None if self.correction is None else self.correction.pinned(self.thetas[0])
        self.momenta = self._momenta()
        self.steps = np.array([len(batches.sizes) for batches in self.minibatches])
        self.losses = torch.zeros(len(clients), dtype=torch.float64, device=self.device)
        self.useful = self.computed = 0

    def train(self) -> list[Update]:
        """One update per client."""
        samples = joined([client.samples for client in self.clients])
        table, sizes = self._tables()
        counts = torch.from_numpy(sizes)[:, :, None].to(self.device)
        numbers, used = (
            torch.from_numpy(table).to(self.device),
            torch.arange(table.shape[2], device=self.device) < counts,
        )
        weights = used / counts.clamp(min=1).to(self.thetas[0])
        if (sample_weight := sample_weights(self.clients[0].flat.loss, samples.targets)) is not None:
            total = (sample_weight.to(weights)[numbers] * used).sum(2, keepdim=True)
            weights = used / total.where(total > 0, 1)  # numerators contain the samples' own weights
        actives, widths = (sizes > 0).sum(1).tolist(), sizes.max(1, initial=0).tolist()
        self.useful, self.computed = int(sizes.sum()), int(np.dot(actives, widths))
        size = max(1, GATHERED // (table[0].size * sample_bytes(samples))) if len(table) else 1
        for begin in range(0, len(table), size):
            block = numbers[begin : begin + size]
            batches = samples[block.reshape(-1)]
            for step, (inputs, targets) in enumerate(_steps(batches, block.shape), begin):
                self._step(inputs, targets, weights[step], actives[step], widths[step])
        means = (self.losses.cpu() / torch.from_numpy(self.steps)).tolist()  # 0 / 0 is NaN
        thetas = torch.cat(self.thetas, 1).unbind()
        return [self._update(index, thetas[index], means[index]) for index in range(len(self.clients))]

    def _step(self, inputs: Inputs, targets: Tensor, weights: Tensor, active: int, width: int) -> None:
        """A step of the first `active` clients; of their minibatches the first `width` places are used."""
        losses, thetas, grads, momenta = self.losses, self.thetas, self.grads, self.momenta
        if active < len(losses):
            losses = losses[:active]
            thetas, grads, momenta = ([block[:active] for block in blocks] for blocks in (thetas, grads, momenta))
        if weights.shape != (active, width):
            cut = operator.itemgetter((slice(active), slice(width)))
            inputs, targets, weights = map_leaves(cut, inputs), cut(targets), cut(weights)
        losses.add_(self.gradients.gradient(thetas, inputs, targets, weights, grads))
        if self.correction is not None:
            self.correction.first(active)(grads[0], thetas[0])
        if self.local.optimizer == "adam":
            for index in range(active):
                self.moments[index] = self.moments[index] or optimizer.zero_moments(thetas[0][index])
            optimizer.adam(list(thetas[0]), list(grads[0]), self.moments[:active], self.local, 1.0)
        else:
            optimizer.sgd(thetas, grads, momenta, self.local, 1.0)
        if self.pinned is not None:
            self.pinned.restore(thetas[0])

    def _blocks(self, name: str) -> list[Tensor]:
        """A matrix (m, d) of any content, one block per range of columns."""
        m, like = len(self.clients), self.clients[0].start
        scratch = scratch_buffer(f"batched {name}", (m * len(like),), like)
        return [scratch[m * columns.start : m * columns.stop].view(m, -1) for columns in self.columns]

    def _momenta(self) -> list[Tensor]:
        """Momentum buffers (m, d) in blocks; from 0 the first step is that of a fresh optimiser."""
        if self.local.optimizer == "adam" or self.local.momentum == 0:
            return []
        buffers = self._blocks("momenta")
        for block, columns in zip(buffers, self.columns, strict=True):
            block.zero_()
            for row, moments in enumerate(self.moments):
                if moments:
                    block[row].copy_(moments["momentum_buffer"][columns])
        return buffers

    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers (S, m, B) into the joined samples, and sizes (S, m), 0 where a client has no such step.

        Padding repeats the client's own first sample, so that one client's data never reach another's row.
        """
        width = max((int(batches.sizes.max(initial=0)) for batches in self.minibatches), default=0)
        steps = int(self.steps.max(initial=0))
        sizes = np.zeros((len(self.minibatches), steps), dtype=np.int64)
        sizes[np.arange(steps) < self.steps[:, None]] = np.concatenate([batches.sizes for batches in self.minibatches])
        offsets = np.cumsum([0, *(len(client.samples) for client in self.clients[:-1])])
        table = np.empty((len(self.minibatches), steps, width), dtype=np.int64)
        table[:] = np.where(sizes > 0, offsets[:, None], 0)[:, :, None]
        numbers = [batches.numbers + offset for batches, offset in zip(self.minibatches, offsets, strict=True)]
        table[np.arange(width) < sizes[:, :, None]] = np.concatenate(numbers)
        return np.ascontiguousarray(table.swapaxes(0, 1)), np.ascontiguousarray(sizes.T)

    def _update(self, index: int, theta: Tensor, loss: float) -> Update:
        client, steps, state = self.clients[index], int(self.steps[index]), self.clients[index].state
        if self.local.persist_optimizer:
            moments = self.moments[index]
            if self.momenta and steps:
                moments = {"momentum_buffer": torch.cat([block[index] for block in self.momenta])}
            state = {**state, **optimizer.to_state(moments, self.local)}
        return Update(theta, client.buffers, steps, loss, state)


def _steps(batches: Samples, shape: torch.Size) -> Iterator[tuple[Inputs, Tensor]]:
    """Inputs and targets (m, B, ...) of one step after the other; `shape` is (S, m, B)."""
    columns = [leaf.view(*shape, *leaf.shape[1:]).unbind() for leaf in (*leaves(batches.inputs), batches.targets)]
    for *inputs, targets in zip(*columns, strict=True):
        yield with_leaves(batches.inputs, inputs), targets


def sample_bytes(samples: Samples) -> int:
    """Bytes of the inputs of one sample."""
    return sum(math.prod(leaf.shape[1:]) * leaf.element_size() for leaf in leaves(samples.inputs))
