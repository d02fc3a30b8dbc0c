"""Sums over the client models of a round, by blocks of parameters: a block is in memory at a time, not the matrix.

The blocks have a fixed width, whatever memory there is, so that the bits of a sum depend on nothing but its terms. A
weighted sum by blocks has the bits of the sum over the whole matrix.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from drift.store.row_matrices import release
from landscape.model import mapped_files

WIDTH = 1 << 16
"""Parameters in a block."""

MANY = 1 << 12
"""Rows from which the blocks are narrower, so that one of them takes at most 1 GiB."""

LEAST = 1 << 10
"""Columns of the last block of a weighted sum: those of a narrow one would be summed by other instructions."""

LARGE = 1 << 28
"""Numbers m d in a matrix from which inner products with it are summed by blocks, in float64."""


def column_blocks(models: Tensor, width: int = WIDTH, least: int = 1) -> Iterator[slice]:
    """Ranges of the columns of models (m, d); a matrix in a mapped file is released after each of them.

    Args:
        width: Columns in a range.
        least: Columns of the last range; if fewer remain, they belong to the range before.
    """
    for columns in _ranges(models.shape[1], width, least):
        yield columns
        release(models)


def _ranges(d: int, width: int, least: int) -> Iterator[slice]:
    low = 0
    while low < d:
        high = low + width if low + width + least <= d else d
        yield slice(low, high)
        low = high


def narrowed(width: int, count: int) -> int:
    """Columns of a block of `count` rows: `width` up to MANY rows, then fewer."""
    return width if count <= MANY else max(LEAST, width * MANY // count)


def blocks(
    models: Tensor, start: Tensor | None = None, *, width: int = WIDTH, least: int = 1
) -> Iterator[tuple[slice, Tensor]]:
    """Ranges of the columns, and the models in each of them, or the updates if a start (d,) is stated.

    A block (m, w) is valid until the next one: all of them use the same memory. Memory of their own, between which
    results are allocated, would be returned to the system late or never.
    """
    if mapped_files.is_mapped(models):
        yield from _mapped_blocks(models, start, list(_ranges(models.shape[1], width, least)))
        return
    buffer = None
    for columns in column_blocks(models, width, least):
        block = models[:, columns]
        if start is None:
            yield columns, block
            continue
        if buffer is None:  # the widest block is the first or the last one
            size = len(models) * min(block.shape[1] + least, models.shape[1])
            buffer = block_buffer(models, (size,), models.dtype)
        yield columns, torch.sub(block, start[columns], out=buffer[: block.numel()].view(block.shape))


def _mapped_blocks(models: Tensor, start: Tensor | None, ranges: Sequence[slice]) -> Iterator[tuple[slice, Tensor]]:
    """Blocks of models in a mapped file: the next one is read while one is used."""
    size = len(models) * max(columns.stop - columns.start for columns in ranges)
    memory = [block_buffer(models, (size,), models.dtype) for _ in ranges[:2]]

    def read(number: int) -> Tensor:
        columns = ranges[number]
        block = memory[number % 2][: len(models) * (columns.stop - columns.start)].view(len(models), -1)
        mapped_files.read_columns(models, columns, block)
        return block

    with ThreadPoolExecutor(1, "fedscape-ahead") as reader:
        ahead = reader.submit(read, 0)
        for number, columns in enumerate(ranges):
            block = ahead.result()
            if number + 1 < len(ranges):
                ahead = reader.submit(read, number + 1)
            yield columns, block if start is None else torch.sub(block, start[columns], out=block)
            release(models)


def block_buffer(models: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Memory for a block of models; it returns to the system after the last block if they lie in a mapped file."""
    if mapped_files.is_mapped(models):
        return mapped_files.block_memory(dtype, shape)
    return torch.empty(shape, dtype=dtype, device=models.device)


def weighted_models(weights: Tensor, models: Tensor, start: Tensor | None = None) -> Tensor:
    """Weighted sum (d,) of models (m, d), or of their updates from a start (d,), in their dtype."""
    if models.shape[1] <= WIDTH and not mapped_files.is_mapped(models):
        return weights.to(models) @ (models if start is None else models - start)
    total = models.new_empty(models.shape[1])
    for _ in weighted_blocks(weights, models, start, total):
        pass
    return total


def weighted_blocks(
    weights: Tensor, models: Tensor, start: Tensor | None, total: Tensor
) -> Iterator[tuple[slice, Tensor]]:
    """The blocks of `weighted_models`, whose sum has been written to `total` (d,)."""
    values = weights.to(models)
    for columns, block in blocks(models, start, width=narrowed(WIDTH, len(models)), least=LEAST):
        torch.mv(block.T, values, out=total[columns])
        yield columns, block


def summed_models(models: Tensor, start: Tensor | None = None, active: Tensor | None = None) -> Tensor:
    """Sum (d,) of models (m, d) that are `active` (m,), or of their updates from a start (d,), in their dtype."""
    if start is None and active is None and not mapped_files.is_mapped(models):
        return models.sum(0)
    total = models.new_empty(models.shape[1])
    for columns, block in blocks(models, start, width=narrowed(WIDTH, len(models)), least=LEAST):
        torch.sum(block if active is None else block[active], 0, out=total[columns])
    return total


@dataclass(frozen=True)
class Updates:
    """Updates of client models, scale (model minus start), for many sums over the same ones.

    They are computed once where the matrix of the models has less than LARGE numbers, else whenever they are used.

    Args:
        models: Client models, shape (m, d).
        start: The model that the updates are counted from, shape (d,).
        active: Which of the models count, bool, shape (m,), n of them.
        scale: Factor of the updates.
    """

    models: Tensor
    start: Tensor
    active: Tensor
    scale: float = 1.0

    def add_weighted(self, weights: Tensor, out: Tensor) -> Tensor:
        """start plus the sum of the updates weighted by `weights` (n,), written to `out` (d,)."""
        values = weights.to(self.models)
        if self._matrix is not None:
            return torch.addmv(self.start, self._matrix.T, values, out=out)
        for columns, updates in self._blocks(LEAST):
            torch.addmv(self.start[columns], updates.T, values, out=out[columns])
        return out

    def products(self, vector: Tensor) -> Tensor:
        """Inner products (n,) with a vector (d,); from LARGE on summed by blocks, in float64."""
        if self._matrix is not None:
            return torch.mv(self._matrix, vector)
        total = torch.zeros(int(self.active.sum()), dtype=torch.float64)
        for columns, updates in self._blocks(1):
            total += torch.mv(updates, vector[columns])
        return total

    @cached_property
    def _matrix(self) -> Tensor | None:
        if self.models.numel() >= LARGE:
            return None
        models = self.models if bool(self.active.all()) else self.models[self.active]
        return self._scaled(models - self.start)

    def _blocks(self, least: int) -> Iterator[tuple[slice, Tensor]]:
        every = bool(self.active.all())
        for columns, block in blocks(self.models, self.start, least=least):
            yield columns, self._scaled(block if every else block[self.active])

    def _scaled(self, updates: Tensor) -> Tensor:
        return updates if self.scale == 1 else updates.mul_(self.scale)
