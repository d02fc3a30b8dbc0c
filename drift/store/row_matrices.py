"""Client models as rows of a matrix, in memory or in a mapped file, one after the other."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from drift.store import memory_budget
from landscape.model import mapped_files


def rows(models: Tensor, numbers: Sequence[int]) -> Iterator[Tensor]:
    """Rows of models (m, d) one after the other; a matrix in a mapped file is released after each of them."""
    yield from released(models[number] for number in numbers)


class Rows(Sequence[Tensor]):
    """The models (m, d) as a sequence; a matrix in a mapped file is released before each access."""

    def __init__(self, models: Tensor) -> None:
        self.models = models

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, number: Any) -> Any:
        release(self.models)
        return Rows(self.models[number]) if isinstance(number, slice) else self.models[number]


def stacked(blocks: Sequence[Tensor]) -> Tensor:
    """Models (n, d) of several matrices one below the other; in a temporary file if they do not fit the budget."""
    first, number = blocks[0], sum(map(len, blocks))
    if memory_budget.fits(first.dtype, (number, first.shape[1])):
        return torch.cat(list(blocks))
    return filled(number, first[0], (model for block in blocks for model in Rows(block)))


def empty_rows(number: int, like: Tensor) -> Tensor:
    """A matrix of any content for models like a model (d,); in a temporary file if it does not fit the budget."""
    shape = number, len(like)
    if memory_budget.fits(like.dtype, shape):
        return torch.empty(shape, dtype=like.dtype)
    return mapped_files.scratch_tensor(like.dtype, shape)


def filled(number: int, like: Tensor, models: Iterable[Tensor]) -> Tensor:
    """A matrix of `number` models, which are converted to the type of a model (d,); in a file as by `empty_rows`."""
    matrix = empty_rows(number, like)
    for row, model in enumerate(models):
        matrix[row] = model
        release(matrix)
    return matrix


def row_matrix(vectors: Sequence[Tensor]) -> Tensor:
    """Tensors of one shape as rows of a matrix: of the one that they are, one after the other, if it lies in a mapped
    file; else of a copy, for vectors (d,) in a mapped file as by `empty_rows`.
    """
    first = vectors[0]
    if first.ndim != 1 or not mapped_files.is_mapped(first):
        return torch.stack(list(vectors))
    step, memory = len(first) * first.element_size(), first.untyped_storage().data_ptr()
    neighbours = (
        vector.untyped_storage().data_ptr() == memory and vector.data_ptr() == first.data_ptr() + row * step
        for row, vector in enumerate(vectors)
    )
    if all(neighbours):
        return first.as_strided((len(vectors), len(first)), (len(first), 1))
    return filled(len(vectors), first, released(vectors))


def released(vectors: Iterable[Tensor]) -> Iterator[Tensor]:
    """Vectors one after the other; a mapped file that one lies in is released after it was used."""
    for vector in vectors:
        yield vector
        release(vector)


def selected(models: Tensor, wanted: Tensor) -> Tensor:
    """Rows of models (m, d) by number or by a mask (m,); the same matrix if these are all rows in their order."""
    numbers = wanted.nonzero()[:, 0] if wanted.dtype == torch.bool else wanted
    if torch.equal(numbers, torch.arange(len(models))):
        return models
    return stacked([models[number][None] for number in numbers.tolist()] or [models[:0]])


def release(models: Tensor) -> None:
    """Free the memory of models that lie in a mapped file; nothing for others."""
    if models.device.type == "cpu":
        mapped_files.release(models.data_ptr())
