"""Signal, difference of data, drift and noise of clients' updates, from inner products of a few replays of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import stdtrit

PARTS = ("signal", "data", "drift", "noise")
"""Parts of a client's update; their mean squares sum to that of the updates."""

CAUSES = ("signal", "drift", "sampling", "noise")
"""Parts of the mean update of a cohort: the signal, and the three causes of its error."""

PAIRS = tuple(f"{first}={second}" for first, second in combinations(CAUSES, 2))
"""Parts of the mean update that are compared."""

NAMES = (*PARTS, *(f"share {name}" for name in PARTS), *(f"mean {cause}" for cause in CAUSES), "scale", "snr")
"""Entries of the vector that `Replays.estimate` returns."""

SQUARE, SHARE, MEAN = slice(0, 4), slice(4, 8), slice(8, 12)
"""Entries of the parts, of their shares, and of the mean update."""

LEAST = 3
"""Clients, or replays of a client, that a jackknife needs: pairs remain where one is left out."""

ROUNDING = 1e-12
"""Part of the mean square of the updates up to which a square of differences between vectors in float32 is 0."""

POINTS = 400
"""Cohort sizes between which an interval is taken to be linear in 1/m."""


@dataclass(frozen=True)
class Replays:
    """Inner products of frozen updates F_k and replayed updates U_kr of m clients, float64.

    Args:
        frozen: <F_k, F_l>, shape (m, m).
        mixed: <U_kr, F_l>, shape (m, R, m).
        updates: <U_kr, U_ls>, shape (m, R, m, R).
        shares: q_k of these clients, shape (m,); those of all K clients sum to 1.
        number: K, clients from which these were drawn at random without replacement.
        cohort: Size of the cohort whose mean update the entry snr is about.
    """

    frozen: np.ndarray
    mixed: np.ndarray
    updates: np.ndarray
    shares: np.ndarray
    number: int
    cohort: int

    def estimate(self, without: int | None = None, replay: tuple[int, int] | None = None) -> np.ndarray:
        """The quantities of NAMES, as docs/noise-or-drift.md defines them.

        Args:
            without: Client that is left out.
            replay: Client and number of a replay that is left out.
        """
        weights = np.ones(self.mixed.shape[:2])
        if replay is not None:
            weights[replay] = 0
        rows = np.delete(np.arange(len(weights)), [] if without is None else without)
        weights = weights[rows]
        n, q, m, K = weights.sum(1), self.shares[rows], len(rows), self.number
        weights /= n[:, None]
        ff, uf = self.frozen[np.ix_(rows, rows)], self.mixed[rows][:, :, rows]
        uu = np.einsum("kr,krls,ls->kl", weights, self.updates[rows][:, :, rows], weights, optimize=True)
        square = np.einsum("kr,krkr->k", weights, self.updates[rows][:, :, rows])
        products = (n * uu.diagonal() - square) / (n - 1)  # of different replays of a client
        np.fill_diagonal(uu, products)
        along, mean_uf = np.einsum("krk->kr", uf), np.einsum("kr,krl->kl", weights, uf)
        covariance = np.einsum("kr,kr,krl->kl", weights, along, uf) - mean_uf.diagonal()[:, None] * mean_uf
        covariance /= (n - 1)[:, None]  # of the means over replays of <U_k, F_k> and <U_k, F_l>

        single = K / m
        pair = np.full((m, m), K * (K - 1) / (m * (m - 1)))
        np.fill_diagonal(pair, single)
        pair *= np.outer(q, q)
        frozen_mean, mixed_mean, mean = (float((pair * matrix).sum()) for matrix in (ff, mean_uf, uu))
        A, B = single * q @ mean_uf.diagonal(), single * q @ ff.diagonal()
        A2 = A**2 - single**2 * q**2 @ covariance.diagonal()
        AC = A * mixed_mean - single * float((q[:, None] * pair * covariance).sum())
        a, a2, cross = (A / B, A2 / B**2, AC / B) if B > 0 else (0.0, 0.0, 0.0)
        signal, noise, h = a2 * frozen_mean, square - products, q / q.sum()
        parts = np.array([signal, a2 * B - signal, single * q @ products - a2 * B, single * q @ noise])
        distances = uu.diagonal() - 2 * uu @ h + h @ uu @ h
        sampling, mean_noise = K**2 / (m - 1) * q**2 @ distances, K * single * q**2 @ noise
        causes = np.array([signal, mean - 2 * cross + signal, sampling, mean_noise])
        total = single * q @ square
        parts, causes = (np.where(np.abs(values) > ROUNDING * total, values, 0.0) for values in (parts, causes))
        error = float(causes[1:] @ coefficients(self.cohort, K)[1:])
        shares = parts / total if total > 0 else np.full(4, np.nan)
        return np.array([*parts, *shares, *causes, a, signal / error if error else np.nan])

    def estimated(self) -> ReplayEstimate:
        """The estimate with its covariance: the jackknife over clients, and over the replays of each client.

        Two replays allow no jackknife of a client. The clients then stand for a sample of more, which makes intervals
        wider.
        """
        m, R = self.mixed.shape[:2]
        sampled, within = m / self.number, R >= LEAST
        parts, degrees = [], []
        if sampled < 1 or not within:
            left = [self.estimate(without=client) for client in range(m)]
            parts.append((1 - sampled if within else 1) * (m - 1) * np.cov(np.transpose(left), bias=True))
            degrees.append(m - 1)
        for client in range(m if within else 0):
            left = [self.estimate(replay=(client, replay)) for replay in range(R)]
            parts.append(sampled * (R - 1) * np.cov(np.transpose(left), bias=True))
            degrees.append(R - 1)
        return ReplayEstimate(self.estimate(), np.array(parts), np.array(degrees), self.number, self.cohort)


@dataclass(frozen=True)
class ReplayEstimate:
    """What `Replays.estimate` returns, with its covariance.

    Args:
        values: Shape (n,), by NAMES.
        covariances: Parts of their covariance, which are independent, shape (c, n, n).
        degrees: Degrees of freedom of the parts, shape (c,).
        number, cohort: As in `Replays`.
    """

    values: np.ndarray
    covariances: np.ndarray
    degrees: np.ndarray
    number: int
    cohort: int

    def error(self, contrasts: np.ndarray) -> np.ndarray:
        """Half the widths of intervals of 95 % of contrasts (p, n) of the values, shape (p,).

        The degrees of freedom are those of Satterthwaite, so that a client that dominates the variance widens them.
        """
        variances = np.einsum("pi,cij,pj->cp", contrasts, np.nan_to_num(self.covariances), contrasts).clip(0)
        unknown = (contrasts != 0) @ np.isnan(np.diagonal(self.covariances, 0, 1, 2)).any(0)
        total = np.where(unknown, np.nan, variances.sum(0))
        squares = np.maximum((variances**2 / self.degrees[:, None]).sum(0), np.finfo(float).tiny)
        return stdtrit(np.maximum(total**2 / squares, 1.0), 0.975) * np.sqrt(total)

    @property
    def half(self) -> np.ndarray:
        """Half the widths of the intervals of the values, shape (n,)."""
        return self.error(np.eye(len(self.values)))

    def differences(self, cohorts: np.ndarray) -> np.ndarray:
        """Differences of the parts of the mean update of cohorts (n,), half the widths of their intervals, and the sums
        of the sizes of both parts, shape (3, 6, n), by PAIRS."""
        factors = np.array([coefficients(cohort, self.number) for cohort in cohorts])
        rows = []
        for first, second in combinations(range(len(CAUSES)), 2):
            contrast = np.zeros((len(cohorts), len(NAMES)))
            contrast[:, MEAN.start + first], contrast[:, MEAN.start + second] = factors[:, first], -factors[:, second]
            parts = contrast[:, MEAN] * self.values[MEAN]
            rows.append((parts.sum(1), self.error(contrast), np.maximum(np.abs(parts).sum(1), np.finfo(float).tiny)))
        return np.array(rows).transpose(1, 0, 2)

    def equal_cohorts(self) -> np.ndarray:
        """Cohort sizes from 1 to K at which parts are equal, with the bounds of their intervals, shape (6, 3).

        Differences are linear in 1/m, so that the sizes are exact; the bounds are within 0.1 %.
        """
        shares = np.geomspace(1 / self.number, 1, POINTS)
        different, error, _ = self.differences(1 / shares)
        return 1 / np.array([crossing(shares, *row) for row in zip(different, error, strict=True)])[:, [0, 2, 1]]


def equal_steps(estimates: Sequence[ReplayEstimate], steps: np.ndarray) -> np.ndarray:
    """Local steps at which parts are equal in the cohort, as `ReplayEstimate.equal_cohorts`, shape (6, 3).

    NaN for one number of steps.

    Args:
        estimates: After numbers of steps.
        steps: Ascending, shape (n,); between them differences, over the size of both parts, and their errors are
            interpolated over the logarithm.
    """
    if steps[0] == steps[-1]:
        return np.full((len(PAIRS), 3), np.nan)
    places = np.log(np.maximum(steps, 1))
    rows = np.array([estimate.differences(np.array([estimate.cohort]))[:, :, 0] for estimate in estimates])
    return np.exp([crossing(places, *(rows[:, :2, pair] / rows[:, 2:, pair]).T) for pair in range(len(PAIRS))])


def coefficients(cohort: float, number: int) -> np.ndarray:
    """Factors of the entries MEAN in the mean update of a cohort of `number` clients, shape (4,), by CAUSES."""
    return np.array([1.0, 1.0, 1 / cohort - 1 / number, 1 / cohort])


def crossing(places: np.ndarray, difference: np.ndarray, error: np.ndarray) -> tuple[float, float, float]:
    """Place at which a difference is zero, and the least and largest place, this one too, with zero in its interval.

    NaN: the difference has one sign everywhere; no place has zero in its interval.

    Args:
        places: Ascending, shape (n,); between them both others are linear.
        difference: At each place, shape (n,).
        error: Half the width of its interval, shape (n,).
    """
    where, *ends = (_zeros(places, values) for values in (difference, difference - error, difference + error))
    inside = np.concatenate([places[np.abs(difference) <= error], where, *ends])
    low, high = (float(end(inside)) if len(inside) else np.nan for end in (np.min, np.max))
    return float(where[0]) if len(where) else np.nan, low, high


def _zeros(places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Places, ascending, at which values that are linear between places are zero, if not all of them are."""
    signs = np.sign(values)
    left = np.flatnonzero(signs[:-1] * signs[1:] < 0)
    between = places[left] + np.diff(places)[left] * values[left] / (values[left] - values[left + 1])
    return np.sort(np.concatenate([between, places[signs == 0] if signs.any() else []]))
