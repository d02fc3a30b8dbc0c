"""Every class split over the clients by a Dirichlet draw. Source: Yurochkin et al. 2019, section 4; papers.md 6.2."""

from typing import Literal

import numpy as np
from pydantic import Field

from drift.partitions._draws import draw_samples, log_gammas
from drift.partitions._partitioner import Partitioner, require_samples

REDRAWS = 10_000
NUMBERS_AT_ONCE = 2**20
NUMBERS_IN_ALL = 5 * 10**8


class Partition(Partitioner):
    """Class c goes to the clients in proportions q ~ Dir(concentration 1_K), one draw per class.

    `capped` (FedLab as used by IMA; LSS): in class order, a client that already has n / K samples gets none of
    the class and the other proportions are renormalised; all classes are drawn again until every client has
    `minimum` samples. `plain` (FedEve's code): no cap, no minimum, clients may be empty. Both cut a class at
    floor(n_c cumsum(q)) and drop nothing; FedLAW's code rounds each count instead, which moves single samples.

    Unlike the paper: the default is the capped variant, which IMA and LSS have; FedLAW and FedEve have the plain one.

    Args:
        concentration: Small is skewed, large is nearly iid.
        variant: Default as in the IMA and LSS papers; FedLAW and FedEve use "plain".
        minimum: Smallest number of samples of a client; "capped" only (IMA 10, LSS 40).
    """

    concentration: float = Field(default=0.1, gt=0, allow_inf_nan=False)
    variant: Literal["capped", "plain"] = "capped"
    minimum: int = Field(default=10, ge=0)

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        require_samples(labels, clients)
        if self.variant == "plain":
            return split_classes(labels, clients, self.concentration, rng)
        classes, sizes = _classes(labels)
        return draw_samples(classes, self._capped(sizes, clients, rng).T, rng)

    def _capped(self, per_class: np.ndarray, clients: int, rng: np.random.Generator) -> np.ndarray:
        """Counts of the first draw in which every client has the minimum, shape (C, K)."""
        samples = int(per_class.sum())
        if clients * self.minimum > samples:
            raise ValueError(
                f"{clients} clients with at least {self.minimum} samples each need {clients * self.minimum}, there "
                f"are {samples}; use fewer clients, a smaller minimum, or variant 'plain'."
            )
        numbers = len(per_class) * clients
        redraws = min(REDRAWS, max(1, NUMBERS_IN_ALL // numbers))  # limits a hopeless attempt to a minute
        batch = max(1, min(256, NUMBERS_AT_ONCE // numbers))
        for done in range(0, redraws, batch):
            shape = (min(batch, redraws - done), len(per_class), clients)
            counts = _counts(per_class, log_gammas(self.concentration, shape, rng), samples / clients)
            enough = counts.sum(axis=1).min(axis=1) >= self.minimum
            if enough.any():
                return counts[enough.argmax()]
        raise ValueError(
            f"{redraws} Dirichlet draws with concentration {self.concentration:g} gave no partition of {samples} "
            f"samples over {clients} clients with at least {self.minimum} each; use fewer clients, a larger "
            f"concentration, a smaller minimum, or variant 'plain'."
        )


def split_classes(labels: np.ndarray, clients: int, concentration: float, rng: np.random.Generator) -> list[np.ndarray]:
    """Sample numbers of every client, each class in proportions q ~ Dir(concentration 1_K); clients may be empty.

    No sample is dropped, and there may be fewer samples than clients.
    """
    classes, per_class = _classes(labels)
    counts = _counts(per_class, log_gammas(concentration, (1, len(per_class), clients), rng), np.inf)[0]
    return draw_samples(classes, counts.T, rng)


def _classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Class of every sample among those that occur, shape (n,), and samples of each class, shape (C,)."""
    _, classes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    return classes, sizes


def _counts(per_class: np.ndarray, log_gammas: np.ndarray, cap: float) -> np.ndarray:
    """Samples per class and client; clients with `cap` samples get no more.

    Args:
        per_class: Samples of each class, shape (C,).
        log_gammas: Logarithms of the unnormalised proportions, shape (draws, C, K).
        cap: In samples.

    Returns:
        Counts, shape (draws, C, K), int64; their sums over clients are `per_class`.
    """
    counts = np.empty(log_gammas.shape, dtype=np.int64)
    totals = np.zeros((log_gammas.shape[0], log_gammas.shape[2]), dtype=np.int64)
    for c, size in enumerate(per_class):
        logs = np.where(totals < cap, log_gammas[:, c], -np.inf)
        reached = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
        cuts = np.floor(size * (reached / reached[:, -1:])).astype(np.int64)
        counts[:, c] = np.diff(cuts, axis=1, prepend=0)
        totals += counts[:, c]
    return counts
