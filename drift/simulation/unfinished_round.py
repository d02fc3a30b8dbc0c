"""A trained round whose Gram matrix is computed by the thread that writes it, as no later round needs it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from torch import Tensor

from drift.store import files
from drift.store.round_record import Round


class UnfinishedRound:
    """A round and what computes its Gram matrix.

    Args:
        record: The round, without the matrix if `products` is stated.
        products: Computes the matrix, shape (m + 3, m + 3); None where it is there.
    """

    def __init__(self, record: Round, products: Callable[[], Tensor] | None = None) -> None:
        self.record = record
        self._products, self._lock = products, threading.Lock()

    def link(self) -> str:
        """The link of the round (`drift.store.files.link`)."""
        return files.link(self.finished())

    def finished(self) -> Round:
        """The round with its Gram matrix, which is computed once."""
        with self._lock:
            if self._products is not None:
                self.record, self._products = replace(self.record, gram=self._products()), None
            return self.record
