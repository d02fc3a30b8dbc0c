"""What every partition has: options as frozen fields, and `split`."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from pydantic import BaseModel, ConfigDict


class Partitioner(BaseModel, ABC):
    """A rule that gives samples to clients; the fields of a subclass are its options."""

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
            ValueError: If the samples cannot be split so; says what would help.
        """


def require_samples(labels: np.ndarray, clients: int) -> None:
    """Refuses labels that are no flat list, no clients, and fewer samples than clients.

    Raises:
        ValueError: In these cases.
    """
    if labels.ndim != 1:
        raise ValueError(f"labels have shape {labels.shape}; a partition needs one label a sample, shape (n,).")
    if clients < 1:
        raise ValueError(f"{clients} clients asked for; give at least 1.")
    if len(labels) < clients:
        raise ValueError(f"{len(labels)} samples cannot serve {clients} clients; use at most {len(labels)} clients.")
