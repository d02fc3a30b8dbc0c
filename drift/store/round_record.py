"""The record of a round, which every method produces and every analysis reads, and its Gram matrix."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from drift.store.column_blocks import WIDTH, block_buffer, blocks, narrowed, weighted_blocks, weighted_models
from drift.store.file_layout import LINKED
from drift.store.round_headers import Header
from landscape.model.mapped_files import is_mapped
from landscape.model.model import with_buffers
from landscape.results.notebook_table import notebook_table

_NONE = torch.zeros(0)


@dataclass(frozen=True, repr=False)
class Round:
    """One round of a run, with m clients in the cohort, d parameters and b buffers.

        last = run.round(-1)
        last.clients - last.start  # updates (m, d), if the round kept its clients

    Args:
        index: Round number, from 0.
        ids, sizes: Client ids and sample counts, shape (m,).
        weights: Aggregation weights that the method used, shape (m,).
        gram: Inner products of [start, previous update, end - start, client updates], shape (m + 3, m + 3).
        metrics: Numbers of the round by name, such as loss (nats) and error (fraction).
        start, end: The model that clients received and the new global model, shape (d,); None if not stored.
        clients: Models after local training: `start` plus the updates as received, shape (m, d); None if not stored.
        start_buffers, end_buffers, client_buffers: Floating buffers, shape (b,) and (m, b). Models that have any carry
            them (`landscape.Model`): `start.buffers`, `clients[0].buffers`.
        extras: Numbers that the method recorded, such as gain or gamma; `excluded` has ids of non-finite clients,
            `stopped` of those that sent nothing; `steps` and `start_round` (m,) where clients differ in them.
        sent: Tensors that clients received in addition to the model, by name (`Method.sends`).
        carried: State that clients keep for their next round, by name, one row per client of `carried["ids"]`.
    """

    index: int
    ids: Tensor
    sizes: Tensor
    weights: Tensor
    gram: Tensor
    metrics: dict[str, float] = field(default_factory=dict)
    start: Tensor | None = None
    end: Tensor | None = None
    clients: Tensor | None = None
    start_buffers: Tensor = _NONE
    end_buffers: Tensor = _NONE
    client_buffers: Tensor = _NONE
    extras: dict[str, Tensor] = field(default_factory=dict)
    sent: dict[str, Tensor] = field(default_factory=dict)
    carried: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, buffers in (("start", "start_buffers"), ("end", "end_buffers"), ("clients", "client_buffers")):
            if (models := getattr(self, name)) is not None:
                object.__setattr__(self, name, with_buffers(models, getattr(self, buffers)))

    @classmethod
    def without_models(cls, small: Header) -> Round:
        """The record of which the small arrays of its file are all that is read."""
        tensors = {name: torch.from_numpy(value) for name, value in small.arrays.items()}
        named: dict[str, dict[str, Any]] = {"metric": {}, "extras": {}}
        for name, value in tensors.items():
            group, _, rest = name.partition(".")
            named.get(group, {})[rest] = value
        linked: dict[str, Any] = {name: tensors[name] for name in LINKED}
        metrics = {name: float(value) for name, value in named["metric"].items()}
        return cls(index=small.index, metrics=metrics, extras=named["extras"], **linked)

    def __repr__(self) -> str:
        """One line: number, cohort, size, stored models, and loss and accuracy if they were computed."""
        stored = [name for name in ("start", "end", "clients") if getattr(self, name) is not None]
        size = next((value.shape[-1] for value in (self.end, self.start, self.clients) if value is not None), None)
        numbers = [f"{name} {self.metrics[name]:.4g}" for name in ("loss", "accuracy") if name in self.metrics]
        models = f"models of {size} parameters: {', '.join(stored)}" if size is not None else "no models stored"
        return f"Round({', '.join([f'{self.index}: {len(self.ids)} clients', models, *numbers])})"

    def _repr_html_(self) -> str:
        """A small table for notebooks."""
        rows = {"clients": self.ids.tolist(), "samples": self.sizes.tolist(), **self.metrics}
        return notebook_table(repr(self), rows)

    @property
    def shares(self) -> Tensor:
        """Data-size weights of the cohort, summing to 1, shape (m,), float64; equal where no client has samples."""
        sizes = self.sizes.double() if bool(self.sizes.any()) else torch.ones(len(self.sizes), dtype=torch.float64)
        return sizes / sizes.sum()

    @property
    def deltas(self) -> Tensor:
        """Client updates, client minus start, shape (m, d).

        Raises:
            LookupError: If the clients are not stored.
        """
        return self.kept("clients") - self.kept("start")

    @property
    def fma(self) -> Tensor:
        """FMA: mean of the clients by data sizes, whatever weights experiment and method use, shape (d,)."""
        return weighted_models(self.shares, self.kept("clients"))

    def mean_update(self, weights: Tensor) -> Tensor:
        """Sum of the client updates weighted by `weights` (m,), shape (d,), without a matrix of all of them.

        Raises:
            LookupError: If the clients are not stored.
        """
        return weighted_models(weights, self.kept("clients"), self.kept("start"))

    def kept(self, name: str) -> Tensor:
        """The stored start, end or clients.

        Raises:
            LookupError: If it is not stored.
        """
        value: Tensor | None = getattr(self, name)
        if value is None:
            policy = "clients" if name == "clients" else "globals"
            raise LookupError(f"round {self.index} kept no {name}; train with --set keep.{policy}=all to have it.")
        return value


START, PREVIOUS, STEP, CLIENTS = 0, 1, 2, 3
"""Rows of the matrix; client k of the cohort is row CLIENTS + k."""

SMALL = 256
"""Rows up to which torch multiplies; the product of more rows with themselves is left to NumPy, which computes it up to
the diagonal alone."""


def gram(start: Tensor, previous: Tensor, step: Tensor, deltas: Tensor, *, block: int = WIDTH) -> Tensor:
    """Inner products of [start, previous update, global step, client updates].

    The sum runs over blocks of the parameters in float64, to save memory.

    Args:
        start: The model that the clients received, shape (d,).
        previous: The update the server expected, client minus start in sign, shape (d,).
        step: New global model minus start, shape (d,).
        deltas: Clients minus start, shape (m, d).

    Returns:
        Symmetric matrix, shape (m + 3, m + 3), float64.
    """
    return _gram((start, previous, step), deltas, None, block)


def gram_of_models(start: Tensor, previous: Tensor, step: Tensor, clients: Tensor) -> Tensor:
    """The same for client models (m, d), whose updates are computed by blocks as well."""
    return _gram((start, previous, step), clients, start, WIDTH)


def gram_and_mean_update(
    start: Tensor, previous: Tensor, step: Tensor, clients: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """`gram_of_models`, and the mean update (d,) by `weights` (m,), of models that are read once for both."""
    mean = torch.empty_like(start)
    updates = weighted_blocks(weights, clients, start, mean)
    return _sum_of_products((start, previous, step), clients, _split(updates, clients)), mean


def mean_and_sums(
    start: Tensor, previous: Tensor, clients: Tensor, weights: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """`weighted_models` (d,) of models that are read once, and `gram_and_mean_update` if it is the new global model."""
    model, step, update = (torch.empty_like(start) for _ in range(3))
    values = weights.to(clients)

    def updates() -> Iterator[tuple[slice, Tensor]]:
        for columns, block in weighted_blocks(weights, clients, None, model):
            torch.sub(model[columns], start[columns], out=step[columns])
            torch.sub(block, start[columns], out=block)
            torch.mv(block.T, values, out=update[columns])
            yield columns, block

    products = _sum_of_products((start, previous, step), clients, _split(updates(), clients))
    return model, (products, update)


def is_read_once(clients: Tensor) -> bool:
    """Whether models (m, d) lie in a file, and the blocks of their means and of their Gram matrix are the same."""
    return is_mapped(clients) and narrowed(WIDTH, len(clients)) == narrowed(WIDTH, CLIENTS + len(clients))


def _split(wide: Iterable[tuple[slice, Tensor]], clients: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Blocks of a mean, of which the last may be wider, as those of the Gram matrix."""
    for columns, block in wide:
        low = columns.start
        for piece in block.split(narrowed(WIDTH, len(clients)), 1):
            yield slice(low, low + piece.shape[1]), piece
            low += piece.shape[1]


def _gram(vectors: tuple[Tensor, ...], models: Tensor, start: Tensor | None, width: int) -> Tensor:
    return _sum_of_products(vectors, models, blocks(models, start, width=narrowed(width, CLIENTS + len(models))))


def _sum_of_products(vectors: tuple[Tensor, ...], models: Tensor, updates: Iterable[tuple[slice, Tensor]]) -> Tensor:
    size = CLIENTS + len(models)
    total = torch.zeros(size, size, dtype=torch.float64)
    if size <= SMALL:
        for chunk in _updates(vectors, models, updates, 1):
            total += chunk @ chunk.T
        return total
    parallel = 2 if is_mapped(models) else 1  # a core that is idle multiplies a block while the next one is prepared
    products: deque[Future[np.ndarray]] = deque()
    with threadpool_limits(torch.get_num_threads(), "blas"), ThreadPoolExecutor(parallel, "fedscape-gram") as pool:
        for chunk in _updates(vectors, models, updates, parallel):
            products.append(pool.submit(lambda rows: rows @ rows.T, chunk.numpy()))
            if len(products) == parallel:
                total += torch.from_numpy(products.popleft().result())
        for product in products:
            total += torch.from_numpy(product.result())
    return total


def _updates(
    vectors: tuple[Tensor, ...], models: Tensor, updates: Iterable[tuple[slice, Tensor]], buffers: int
) -> Iterator[Tensor]:
    """Columns of the vectors and updates, block by block in float64; each stays until `buffers` more are asked for."""
    size, memory = CLIENTS + len(models), list[Tensor]()
    for number, (columns, block) in enumerate(updates):
        if len(memory) < buffers:
            memory.append(block_buffer(models, (size, block.shape[1]), torch.float64))
        update = memory[number % buffers][:, : block.shape[1]]
        for row, vector in enumerate(vectors):
            update[row] = vector[columns]
        update[CLIENTS:] = block
        yield update
