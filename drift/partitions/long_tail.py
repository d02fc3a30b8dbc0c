"""Classes of falling size, then another partition. Source: FedLAW paper; methods.md 6.3."""

from __future__ import annotations

import numpy as np
from pydantic import Field, SerializeAsAny

from drift.partitions._grouped import Based, Groups, divided
from drift.partitions._partitioner import Partitioner, require_samples
from drift.partitions.dirichlet import Partition as Dirichlet


class Partition(Based):
    """Class c of C keeps floor(n_c ratio^(-c / (C - 1))) random samples; `base` splits what is kept.

    C is one more than the largest label. Samples that are not kept belong to nobody.

    Args:
        ratio: Of the first class to the last one (FedLAW: 5 for clients; its proxy set has `proxy.long_tail` of 10).
        base: Partition of the kept samples; a Dirichlet draw where not given.
    """

    ratio: float = Field(default=5.0, ge=1, allow_inf_nan=False)
    base: SerializeAsAny[Partitioner] = Field(default_factory=Dirichlet)

    def split(
        self, labels: np.ndarray, clients: int, rng: np.random.Generator, groups: Groups | None = None
    ) -> list[np.ndarray]:
        require_samples(labels, clients)
        kept = self.kept(labels, rng)
        own = {kind: numbers[kept] for kind, numbers in (groups or {}).items()}
        return [kept[part] for part in divided(self.base, labels[kept], clients, rng, own)]

    def kept(self, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Numbers of the samples that are kept, ascending."""
        last = max(1, int(labels.max()))
        chosen = []
        for label, size in zip(*np.unique(labels, return_counts=True), strict=True):
            count = int(size * self.ratio ** (-label / last) + 1e-9)  # 1e-9: 500 / 5 is 100 in floating point too
            chosen.append(rng.permutation(np.flatnonzero(labels == label))[:count])
        return np.sort(np.concatenate(chosen))
