"""Signal, difference of data, drift and noise of clients' updates, from inner products of a few replays of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

POINTS = 400
"""Places between which a difference is taken to be linear."""


@dataclass(frozen=True)
class Replays:
    """Inner products of frozen updates F_k and replayed updates U_kr of m clients, float64.

    Args:
        frozen: <F_k, F_l>, shape (m, m).
        mixed: <U_kr, F_l>, shape (m, R, m).
        updates: <U_kr, U_ls>, shape (m, R, m, R).
        active: Replays that count, bool (m, R); at least two of each client.
        shares: q_k of these clients, shape (m,); those of all K clients sum to 1.
        number: K, clients from which these were drawn at random without replacement.
        cohort: Size of the cohort whose mean update the entry snr is about.
    """

    frozen: np.ndarray
    mixed: np.ndarray
    updates: np.ndarray
    active: np.ndarray
    shares: np.ndarray
    number: int
    cohort: int

    def estimate(self, active: np.ndarray | None = None, without: int | None = None) -> np.ndarray:
        """The quantities of NAMES, as docs/noise-or-drift.md defines them.

        Args:
            active: Replays that count, bool (m, R).
            without: Client that is left out.
        """
        rows = np.delete(np.arange(len(self.shares)), [] if without is None else without)
        weights = (self.active if active is None else active)[rows].astype(float)
        n, q, m, K = weights.sum(1), self.shares[rows], len(rows), self.number
        weights /= n[:, None]
        ff, uf = self.frozen[np.ix_(rows, rows)], self.mixed[rows][:, :, rows]
        inner = self.updates[rows, :, rows]
        uu = np.einsum("kr,krls,ls->kl", weights, self.updates[rows][:, :, rows], weights, optimize=True)
        square = np.einsum("kr,krr->k", weights, inner)
        products = (n * uu.diagonal() - square) / (n - 1)  # of different replays of a client
        noise = square - products
        np.fill_diagonal(uu, products)
        along = np.einsum("krk->kr", uf)
        mean_uf = np.einsum("kr,krl->kl", weights, uf)
        covariance = np.einsum("kr,kr,krl->kl", weights, along, uf) - mean_uf.diagonal()[:, None] * mean_uf
        covariance /= (n - 1)[:, None]  # of the means over replays of <U_k, F_k> and <U_k, F_l>

        single = K / m
        pair = np.full((m, m), K * (K - 1) / (m * (m - 1)))
        np.fill_diagonal(pair, single)
        pair *= np.outer(q, q)
        total = single * q @ square
        A, B = single * q @ mean_uf.diagonal(), single * q @ ff.diagonal()
        frozen_mean, mixed_mean, mean = (float((pair * matrix).sum()) for matrix in (ff, mean_uf, uu))
        A2 = A**2 - single**2 * q**2 @ covariance.diagonal()
        AC = A * mixed_mean - single * float((q[:, None] * pair * covariance).sum())
        a, a2 = (A / B, A2 / B**2) if B > 0 else (0.0, 0.0)
        signal = a2 * frozen_mean
        parts = np.array([signal, a2 * B - signal, single * q @ products - a2 * B, single * q @ noise])

        h = q / q.sum()
        distances = uu.diagonal() - 2 * uu @ h + h @ uu @ h
        drift = mean - 2 * AC / B + signal if B > 0 else mean
        causes = np.array([signal, drift, K**2 / (m - 1) * q**2 @ distances, K * single * q**2 @ noise])
        error = float(causes @ coefficients(self.cohort, K)) - signal
        shares = parts / total if total > 0 else np.full(4, np.nan)
        return np.array([*parts, *shares, *causes, a, signal / error if error else np.nan])

    def covariances(self) -> tuple[np.ndarray, np.ndarray]:
        """Parts of the covariance of `estimate`, shape (c, n, n), and their degrees of freedom, shape (c,).

        The jackknife in two stages: over clients, and over the replays of each client. A client with two replays has
        no jackknife of its inner; the clients then stand for a sample of more clients, which makes intervals wider.
        """
        m, sampled = len(self.shares), len(self.shares) / self.number
        counts = self.active.sum(1)
        within = bool((counts >= LEAST).all())
        parts, degrees = [], []
        if sampled < 1 or not within:
            left = np.array([self.estimate(without=client) for client in range(m)])
            parts.append((1 - sampled if within else 1) * (m - 1) * np.cov(left.T, bias=True))
            degrees.append(m - 1)
        for client in range(m if within else 0):
            left = np.array([self.estimate(active) for active in self._lacking(client)])
            parts.append(sampled * (counts[client] - 1) * np.cov(left.T, bias=True))
            degrees.append(int(counts[client]) - 1)
        return np.array(parts), np.array(degrees)

    def _lacking(self, client: int) -> Iterator[np.ndarray]:
        for replay in np.flatnonzero(self.active[client]):
            active = self.active.copy()
            active[client, replay] = False
            yield active

    def estimated(self) -> ReplayEstimate:
        """The estimate with its covariance."""
        return ReplayEstimate(self.estimate(), *self.covariances(), self.number, self.cohort)


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
        variances = np.einsum("pi,cij,pj->cp", contrasts, self.covariances, contrasts, optimize=True).clip(0)
        total = variances.sum(0)
        squares = np.maximum((variances**2 / self.degrees[:, None]).sum(0), np.finfo(float).tiny)
        return stdtrit(np.maximum(total**2 / squares, 1.0), 0.975) * np.sqrt(total)

    @property
    def half(self) -> np.ndarray:
        """Half the widths of the intervals of the values, shape (n,)."""
        return self.error(np.eye(len(self.values)))

    def differences(self, cohorts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Differences of the parts of the mean update of cohorts (n,), and half the widths of their intervals.

        Each is divided by the sum of both sizes; shape (6, n), by PAIRS.
        """
        factors = np.array([coefficients(cohort, self.number) for cohort in cohorts])
        rows = []
        for first, second in combinations(range(len(CAUSES)), 2):
            contrast = np.zeros((len(cohorts), len(NAMES)))
            contrast[:, MEAN.start + first], contrast[:, MEAN.start + second] = factors[:, first], -factors[:, second]
            size = np.maximum(np.abs(contrast * self.values).sum(1), np.finfo(float).tiny)
            rows.append((contrast @ self.values / size, self.error(contrast) / size))
        difference, error = np.array(rows).transpose(1, 0, 2)
        return difference, error

    def equal_cohorts(self) -> np.ndarray:
        """Cohort sizes from 1 to K at which parts are equal, with the bounds of their intervals, shape (6, 3)."""
        cohorts = np.geomspace(1, self.number, POINTS)
        return np.array([crossing(cohorts, *row) for row in zip(*self.differences(cohorts), strict=True)])


def equal_steps(estimates: Sequence[ReplayEstimate | None], steps: np.ndarray) -> np.ndarray:
    """Local steps at which parts are equal in the cohort, as `ReplayEstimate.equal_cohorts`, shape (6, 3).

    Args:
        estimates: After numbers of steps; None where there is none.
        steps: Ascending, shape (n,); between them differences are interpolated over the logarithm.
    """
    known = {
        step: estimate
        for step, estimate in zip(steps.tolist(), estimates, strict=True)
        if estimate is not None and step > 0
    }
    if len(known) < 2:
        return np.full((len(PAIRS), 3), np.nan)
    rows = [np.hstack(estimate.differences(np.array([estimate.cohort]))) for estimate in known.values()]
    between = np.geomspace(min(known), max(known), POINTS)

    def along(values: np.ndarray) -> np.ndarray:
        return np.interp(np.log(between), np.log(list(known)), values)

    return np.array([crossing(between, *map(along, pair)) for pair in np.array(rows).transpose(1, 2, 0)])


def coefficients(cohort: float, number: int) -> np.ndarray:
    """Factors of the entries MEAN in the mean update of a cohort of `number` clients, shape (4,), by CAUSES."""
    return np.array([1.0, 1.0, 1 / cohort - 1 / number, 1 / cohort])


def crossing(places: np.ndarray, difference: np.ndarray, error: np.ndarray) -> tuple[float, float, float]:
    """Place at which a difference is zero, and the least and largest place at which zero is in its interval.

    NaN: the difference has one sign everywhere; no place has zero in its interval.

    Args:
        places: Ascending, shape (n,).
        difference: At each place, shape (n,).
        error: Half the width of its interval, shape (n,).
    """
    turns = np.flatnonzero(difference[:-1] * difference[1:] < 0)
    where = float("nan")
    if len(turns):
        ends = slice(turns[0], turns[0] + 2)
        order = np.argsort(difference[ends])
        where = float(np.interp(0.0, difference[ends][order], places[ends][order]))
    inside = places[np.abs(difference) <= error]
    return where, float(min(inside, default=where)), float(max(inside, default=where))
