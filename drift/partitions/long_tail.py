"""Classes of falling size, then another partition. Source: FedLAW paper; papers.md 6.3."""

import numpy as np
from pydantic import Field

from drift.partitions._partitioner import Based, Groups, NamedPartition, Parts, require_samples, split_with_groups
from drift.partitions.dirichlet import Partition as Dirichlet


class Partition(Based):
    """Class c of C keeps floor(n_c ratio^(-c / (C - 1))) random samples; `base` splits these.

    C is one more than the largest label. All other samples are dropped.

    Args:
        ratio: Ratio of the first class to the last one (FedLAW: 5 for clients; 10 by `proxy.long_tail`).
        base: Partition of the remaining samples; default: a Dirichlet draw.
    """

    ratio: float = Field(default=5.0, ge=1, allow_inf_nan=False)
    base: NamedPartition = Field(default_factory=Dirichlet)

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator, groups: Groups | None = None) -> Parts:
        require_samples(labels, clients)
        subset = self.subset(labels, rng)
        rows = {kind: numbers[subset] for kind, numbers in (groups or {}).items()}
        return [subset[numbers] for numbers in split_with_groups(self.base, labels[subset], clients, rng, rows)]

    def subset(self, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Numbers of the remaining samples, ascending."""
        last = max(1, int(labels.max()))
        numbers = []
        for label, size in zip(*np.unique(labels, return_counts=True), strict=True):
            count = int(size * self.ratio ** (-label / last) + 1e-9)  # 1e-9: 500 / 5 is 100 in floating point too
            numbers.append(rng.permutation(np.flatnonzero(labels == label))[:count])
        return np.sort(np.concatenate(numbers))
