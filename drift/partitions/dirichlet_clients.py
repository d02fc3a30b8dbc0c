"""Clients of equal size, each with a Dirichlet draw of classes. Source: Hsu et al. 2019; papers.md 6.2."""

from typing import Literal

import numpy as np
from pydantic import Field

from drift.partitions._draws import draw_counts, draw_samples, log_gammas
from drift.partitions._partitioner import Partitioner, require_samples


class Partition(Partitioner):
    """Client k draws q_k ~ Dir(concentration C prior) and then floor(n / K) samples by it, without replacement.

    Clients draw one after the other; a class that has run out is removed and q_k renormalised. The n mod K samples
    that remain are dropped. FedEve's text cites this partition, its code uses `dirichlet` (variant "plain").

    Args:
        concentration: Small is skewed, large is the prior.
        prior: "global" for the shares of the classes in the data, "uniform" for 1 / C: Dir(concentration 1_C).
    """

    concentration: float = Field(default=0.1, gt=0, allow_inf_nan=False)
    prior: Literal["global", "uniform"] = "global"

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        require_samples(labels, clients)
        _, classes, left = np.unique(labels, return_inverse=True, return_counts=True)
        shares = left / len(labels) if self.prior == "global" else np.full(len(left), 1 / len(left))
        logs = log_gammas(self.concentration * len(left) * shares, (clients, len(left)), rng)
        counts = np.empty((clients, len(left)), np.int64)
        for client in range(clients):
            counts[client] = draw_counts(len(labels) // clients, logs[client], left, rng)
            left = left - counts[client]
        return draw_samples(classes, counts, rng)
