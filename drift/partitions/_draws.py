"""Draws without replacement by Dirichlet proportions."""

import numpy as np


def log_gammas(concentration: float | np.ndarray, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Logarithms of Gamma(concentration) draws, which become Dirichlet proportions when normalised.

    Finite even if the draws themselves underflow: Gamma(a) = Gamma(a + 1) U^(1/a), U uniform on (0, 1] (Marsaglia and
    Tsang 2000, section 6).
    """
    return np.log(rng.standard_gamma(np.broadcast_to(concentration, shape) + 1)) + np.log1p(
        -rng.random(shape)
    ) / np.broadcast_to(concentration, shape)


def draw_counts(size: int, logs: np.ndarray, left: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Counts per class of `size` successive draws, in which a class that runs out is removed.

    All are drawn at once, and the surplus of a class that ran out is drawn again: the same distribution.

    Args:
        size: At most the sum of `left`.
        logs: Logarithms of the unnormalised proportions, shape (C,).
        left: Remaining samples, shape (C,).

    Returns:
        Counts, shape (C,), int64, that sum to `size`.
    """
    counts = np.zeros(len(left), np.int64)
    while missing := size - int(counts.sum()):
        open_ = np.where(counts < left, logs, -np.inf)
        shares = np.exp(open_ - open_.max())
        counts = np.minimum(counts + rng.multinomial(missing, shares / shares.sum()), left)
    return counts


def draw_samples(labels: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Random sample numbers of each client, ascending, by counts per class.

    Args:
        labels: Class of every sample, shape (n,), in 0..C-1.
        counts: Samples per client and class, shape (K, C); the sums over clients are at most those of the data.
    """
    pieces = []
    for label, label_counts in enumerate(counts.T):
        pool = rng.permutation(np.flatnonzero(labels == label))
        pieces.append(np.split(pool[: label_counts.sum()], np.cumsum(label_counts)[:-1]))
    return [np.sort(np.concatenate(blocks)) for blocks in zip(*pieces, strict=True)]
