"""Training and test set merged, partitioned, and cut again in each client. Source: LSS code; methods.md 6.1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import Field, SerializeAsAny

from drift.partitions._grouped import Based, Groups, divided
from drift.partitions._partitioner import Partitioner, require_samples
from drift.partitions.dirichlet import Partition as Dirichlet


class Partition(Based):
    """`base` splits training and test samples together; a stratified part of each client's becomes test samples.

    The test set is the union of these parts, so its labels are as the clients' labels are. Elsewhere the official
    test set stays as it is.

    Args:
        test: Part of each client's samples that are test samples, a fraction 0-1 (LSS 0.25).
        base: Partition of all samples; a Dirichlet draw with at least 40 samples a client where not given (LSS).
    """

    test: float = Field(default=0.25, gt=0, lt=1)
    base: SerializeAsAny[Partitioner] = Field(default_factory=lambda: Dirichlet(minimum=40))

    @property
    def splits_test(self) -> bool:
        """The test set is split with the training set."""
        return True

    def split(
        self, labels: np.ndarray, clients: int, rng: np.random.Generator, groups: Groups | None = None
    ) -> list[np.ndarray]:
        require_samples(labels, clients)
        return divided(self.base, labels, clients, rng, groups)

    def tested(
        self, labels: np.ndarray, parts: Sequence[np.ndarray], rng: np.random.Generator
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Training and test samples of each client, ascending; together they are its part.

        round(test n_k) of a client's n_k samples are test samples, taken from its classes in proportion.
        """
        train, test = [], []
        for part in parts:
            order = rng.permutation(part)
            order = order[np.argsort(labels[order], kind="stable")]
            _, begins, sizes = np.unique(labels[order], return_index=True, return_counts=True)
            rank = (np.arange(len(order)) - np.repeat(begins, sizes) + 0.5) / np.repeat(sizes, sizes)
            chosen = order[np.argsort(rank, kind="stable")[: int(self.test * len(order) + 0.5)]]
            test.append(np.sort(chosen))
            train.append(np.setdiff1d(part, chosen))
        return train, test
