"""Nearly iid clients and skewed ones. Source: FedLAW paper, Appendix D.2; papers.md 6.3."""

import numpy as np
from pydantic import Field

from drift.partitions._draws import draw_samples, log_gammas
from drift.partitions._partitioner import Partitioner, require_samples

REDRAWS = 10_000


class Partition(Partitioner):
    """The first K / 2 clients get shares q ~ Dir(even 1_K) of each class; the rest of the class goes to the other
    clients in proportions Dir(skewed 1).

    A class is cut at floor(n_c cumsum(shares)) and nothing is dropped. FedLAW's Fig. 5 has K = 20 and these defaults.

    Args:
        even: Concentration of the first clients (the paper's alpha_1).
        skewed: Concentration of the others (alpha_2).
        first: Number of even clients; default: half of all, rounded down (Fig. 12: 1 of 3).
        tolerance: Draw again until no client's size differs from n / K by more than this fraction of it (Fig. 12);
            default: any sizes.
    """

    even: float = Field(default=10.0, gt=0, allow_inf_nan=False)
    skewed: float = Field(default=0.1, gt=0, allow_inf_nan=False)
    first: int | None = Field(default=None, ge=0)
    tolerance: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        require_samples(labels, clients)
        first = clients // 2 if self.first is None else self.first
        if first >= clients:
            raise ValueError(f"first is {first} of {clients} clients; leave at least one to the skewed ones.")
        _, classes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        mean = len(labels) / clients
        for _ in range(1 if self.tolerance is None else REDRAWS):
            counts = self._counts(sizes, clients, first, rng)
            if self.tolerance is None or np.abs(counts.sum(axis=1) - mean).max() <= self.tolerance * mean:
                return draw_samples(classes, counts, rng)
        raise ValueError(
            f"{REDRAWS} draws gave no {clients} clients within {self.tolerance:g} of {mean:g} samples; use a larger "
            "tolerance, fewer clients or a larger concentration."
        )

    def _counts(self, sizes: np.ndarray, clients: int, first: int, rng: np.random.Generator) -> np.ndarray:
        """Samples per client and class, shape (K, C); their sums over clients are the sizes (C,)."""
        shares = _shares(log_gammas(self.even, (len(sizes), clients), rng))
        rest = shares[:, first:].sum(axis=1, keepdims=True)
        shares[:, first:] = rest * _shares(log_gammas(self.skewed, (len(sizes), clients - first), rng))
        reached = np.minimum(np.cumsum(shares, axis=1), 1.0)
        reached[:, -1] = 1.0
        return np.diff(np.floor(sizes[:, None] * reached).astype(np.int64), axis=1, prepend=0).T


def _shares(logs: np.ndarray) -> np.ndarray:
    powers = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)
