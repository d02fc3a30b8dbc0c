"""Sums over the client models of a round, by blocks of parameters: a block is in memory at a time, not the matrix.

The blocks have a fixed width, whatever memory there is, so that the bits of a sum depend on nothing but its terms. A
weighted sum by blocks has the bits of the sum over the whole matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import torch
from torch import Tensor

from drift.store import mapped_files

WIDTH = 1 << 16
"""Parameters in a block."""

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
    low, d = 0, models.shape[1]
    while low < d:
        high = low + width if low + width + least <= d else d
        yield slice(low, high)
        low = high
        release(models)


def rows(models: Tensor, numbers: Sequence[int]) -> Iterator[Tensor]:
    """Rows of models (m, d) one after the other; a matrix in a mapped file is released after each of them."""
    for number in numbers:
        yield models[number]
        release(models)


class Rows(Sequence[Tensor]):
    """The models (m, d) as a sequence; a matrix in a mapped file is released before each access."""

    def __init__(self, models: Tensor) -> None:
        self.models = models

    def __len__(self) -> int:
        return len(self.models)

    @overload
    def __getitem__(self, number: int) -> Tensor: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Tensor]: ...

    def __getitem__(self, number: int | slice) -> Tensor | Sequence[Tensor]:
        release(self.models)
        return Rows(self.models[number]) if isinstance(number, slice) else self.models[number]


def release(models: Tensor) -> None:
    """Free the memory of models that lie in a mapped file; nothing for others."""
    if models.device.type == "cpu":
        mapped_files.release(models.data_ptr())


def weighted_models(weights: Tensor, models: Tensor) -> Tensor:
    """Weighted sum (d,) of models (m, d) in their dtype."""
    values = weights.to(models)
    if models.shape[1] <= WIDTH:
        return values @ models
    return torch.cat([values @ models[:, columns] for columns in column_blocks(models, least=LEAST)])


def weighted_updates(weights: Tensor, models: Tensor, start: Tensor) -> Tensor:
    """Weighted sum (d,) of the updates of models (m, d), model minus start (d,), in their dtype."""
    values = weights.to(models)
    if models.shape[1] <= WIDTH:
        return values @ (models - start)
    return torch.cat([values @ (models[:, columns] - start[columns]) for columns in column_blocks(models, least=LEAST)])


def summed_updates(models: Tensor, start: Tensor, active: Tensor) -> Tensor:
    """Sum (d,) of the updates of the models (m, d) that are `active` (m,), model minus start (d,), in their dtype."""
    blocks = [(models[:, columns] - start[columns])[active].sum(0) for columns in column_blocks(models, least=LEAST)]
    return torch.cat(blocks)


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
        if self._whole is not None:
            return torch.addmv(self.start, self._whole.T, values, out=out)
        for columns in column_blocks(self.models, least=LEAST):
            torch.addmv(self.start[columns], self._block(columns).T, values, out=out[columns])
        return out

    def products(self, vector: Tensor) -> Tensor:
        """Inner products (n,) with a vector (d,); from LARGE on summed by blocks, in float64."""
        if self._whole is not None:
            return torch.mv(self._whole, vector)
        total = torch.zeros(int(self.active.sum()), dtype=torch.float64)
        for columns in column_blocks(self.models):
            total += torch.mv(self._block(columns), vector[columns])
        return total

    @cached_property
    def _whole(self) -> Tensor | None:
        return None if self.models.numel() >= LARGE else self._block(slice(None))

    def _block(self, columns: slice) -> Tensor:
        models = self.models[:, columns]
        updates = (models if bool(self.active.all()) else models[self.active]) - self.start[columns]
        return updates if self.scale == 1 else self.scale * updates
