"""Pachinko allocation over coarse and fine classes. Source: Reddi et al. 2021; papers.md 6.3."""

import numpy as np
from pydantic import Field

from drift.partitions._draws import draw_counts, draw_samples, log_gammas
from drift.partitions._partitioner import Grouped, Groups, Parts, require_samples


class Partition(Grouped):
    """Each client draws Dir(concentration) over coarse classes and, in each, Dir(fine) over its fine ones.

    Clients are filled one after the other with floor(n / K) samples: a coarse class, a fine one, an unused sample of
    it. An empty class is removed from every client's proportions and the rest renormalised. The n mod K remaining
    samples are dropped. Needs coarse classes (cifar100).

    Args:
        concentration: Over coarse classes (IMA 0.1).
        fine: Over the fine classes of a coarse one; the customary 10, as the IMA paper gives none.
    """

    concentration: float = Field(default=0.1, gt=0, allow_inf_nan=False)
    fine: float = Field(default=10.0, gt=0, allow_inf_nan=False)

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator, groups: Groups | None = None) -> Parts:
        require_samples(labels, clients)
        coarse = self.group("coarse", labels, groups)
        pairs, classes, left = np.unique(
            np.stack([coarse, labels], axis=1), axis=0, return_inverse=True, return_counts=True
        )
        parents = [np.flatnonzero(pairs[:, 0] == parent) for parent in np.unique(pairs[:, 0])]
        theta = log_gammas(self.concentration, (clients, len(parents)), rng)
        phi = log_gammas(self.fine, (clients, len(pairs)), rng)
        counts = np.zeros((clients, len(pairs)), np.int64)
        for client in range(clients):
            rest = np.array([left[group].sum() for group in parents])
            wanted = draw_counts(len(labels) // clients, theta[client], rest, rng)
            for group, size in zip(parents, wanted.tolist(), strict=True):
                counts[client, group] = draw_counts(size, phi[client, group], left[group], rng)
            left = left - counts[client]
        return draw_samples(classes.ravel(), counts, rng)
