"""The digest of rows that come in any order, computed while the others are still awaited."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import torch
from torch import Tensor

from drift.store.digests import Digested


class RowDigest:
    """The digest of a file up to the end of a matrix, as far as its rows have come.

    Args:
        before: The digest of all that stands before the rows.
        read: Reads a row that came before those in front of it.
    """

    def __init__(self, before: hashlib._Hash, read: Callable[[int], Tensor]) -> None:
        self._before, self._total, self._read = before.digest(), before, read
        self._next, self._waiting = 0, set[int]()

    def add(self, row: int, model: Tensor) -> None:
        """A row that came.

        Raises:
            OSError: If a row cannot be read.
        """
        if row < self._next or row in self._waiting:
            self._next, self._waiting = -1, set()  # it was written again: what is digested is not what is stored
            return
        self._waiting.add(row)
        while self._next in self._waiting:
            content = model if self._next == row else self._read(self._next)
            self._total.update(content.detach().contiguous().view(torch.uint8).numpy().data)
            self._waiting.remove(self._next)
            self._next += 1

    def of_all(self, number: int) -> Digested | None:
        """The digest after `number` rows; None unless these came, each once."""
        return Digested(self._before, self._total) if self._next == number else None
