"""The interface of partitions: options as frozen fields, `split`, and the samples of a round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

Parts = list[np.ndarray]
"""Sample numbers of every client, ascending int64 arrays."""


class Partitioner(BaseModel, ABC):
    """A rule by which clients get samples; the fields of a subclass are its options."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @abstractmethod
    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Sample numbers of every client, disjoint.

        Args:
            labels: Class of every sample, shape (n,), whole numbers.
            clients: K, at least 1.
            rng: Source of every random choice.

        Returns:
            K ascending int64 arrays of numbers in 0..n-1.

        Raises:
            ValueError: If the samples cannot be split like this; the message has a remedy.
        """

    @property
    def moves(self) -> bool:
        """Whether the data of the cohort are redistributed each round."""
        return False

    @property
    def splits_test(self) -> bool:
        """Whether it splits training and test samples together; `tested` then selects the test samples."""
        return False

    def tested(
        self, labels: np.ndarray, parts: Sequence[np.ndarray], rng: np.random.Generator
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Training and test samples of each client, where `splits_test`; no test samples here."""
        return list(parts), [part[:0] for part in parts]

    def for_round(
        self, labels: np.ndarray, parts: Sequence[np.ndarray], cohort: np.ndarray, rng: np.random.Generator
    ) -> list[np.ndarray]:
        """Sample numbers that each client of a round's cohort trains on; their own here.

        The cohort as a whole has the same samples as before, each once.

        Args:
            labels: Class of every sample, shape (n,).
            parts: Result of `split` for the K clients.
            cohort: Client numbers, shape (m,).
            rng: Source of every random choice of this round.

        Returns:
            m ascending int64 arrays, in the order of the cohort; some may be empty.
        """
        return [parts[client] for client in cohort.tolist()]


def require_samples(labels: np.ndarray, clients: int) -> None:
    """Raise ValueError for labels that are not one-dimensional, no clients, and fewer samples than clients."""
    if labels.ndim != 1:
        raise ValueError(f"labels have shape {labels.shape}; a partition needs one label per sample, shape (n,).")
    if clients < 1:
        raise ValueError(f"{clients} clients asked for; give at least 1.")
    if len(labels) < clients:
        raise ValueError(f"{len(labels)} samples cannot serve {clients} clients; use at most {len(labels)} clients.")
