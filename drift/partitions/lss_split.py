"""Training and test set merged, partitioned, and split again per client. Source: LSS code; papers.md 6.1."""

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from drift.partitions._partitioner import Based, Groups, NamedPartition, Parts, require_samples, split_with_groups
from drift.partitions.dirichlet import Partition as Dirichlet


class Partition(Based):
    """`base` splits training and test samples as one set; a stratified part of each client becomes test samples.

    The test set is the union of these parts, so its labels are distributed as those of the clients. Other partitions
    leave the official test set as it is.

    Args:
        test: Fraction of test samples of each client, 0-1 (LSS 0.25).
        base: Partition of all samples; default: a Dirichlet draw with at least 40 samples per client (LSS).
    """

    test: float = Field(default=0.25, gt=0, lt=1)
    base: NamedPartition = Field(default_factory=lambda: Dirichlet(minimum=40))

    @property
    def splits_test(self) -> bool:
        """The test set is split with the training set."""
        return True

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator, groups: Groups | None = None) -> Parts:
        require_samples(labels, clients)
        return split_with_groups(self.base, labels, clients, rng, groups)

    def tested(
        self, labels: np.ndarray, parts: Sequence[np.ndarray], rng: np.random.Generator
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Training and test samples of each client, ascending; their union is its part.

        round(test n_k) of a client's n_k samples are test samples, in proportion to its classes.
        """
        train, test = [], []
        for numbers in parts:
            order = rng.permutation(numbers)
            order = order[np.argsort(labels[order], kind="stable")]
            _, begins, sizes = np.unique(labels[order], return_index=True, return_counts=True)
            rank = (np.arange(len(order)) - np.repeat(begins, sizes) + 0.5) / np.repeat(sizes, sizes)
            selected = order[np.argsort(rank, kind="stable")[: int(self.test * len(order) + 0.5)]]
            test.append(np.sort(selected))
            train.append(np.setdiff1d(numbers, selected))
        return train, test
