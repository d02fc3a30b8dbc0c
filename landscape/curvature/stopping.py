"""When a Lanczos search has its pairs: estimated errors of Ritz values, and what one starting vector cannot show."""

import math

import numpy as np
import torch

from landscape.curvature.lanczos import Lanczos

UNITS = 100
"""Units in the last place of the norm of the matrix that count as rounding: a value within them may be 0."""

KNOWN = 0.03
"""Share of a value that its residual may reach where that is above the tolerance."""

SHARE = 0.1
"""Share of the accepted error that its estimate may reach."""

STILL = 1e-3
"""Relative change of a residual in a step below which it does not fall: its rest was left when a random vector came."""

NEAR_ZERO = 0.1
"""Magnitude, as a part of the norm, below which a value at a signed end is not known relative to itself."""

CERTAIN = 0.03
"""Share of the tolerance that is enough there as a residual, in units of the norm: such values may lie in clusters of
which no gap is known, and an eigenvalue is as near as the residual is long."""

GUARD = 100
"""Multiple of the accepted error that the pair after a single one must be within, so that larger pairs are visible."""

UNSEEN = 0.01
"""Part of a pair in the starting vector, in standard deviations of a random one, below which it may be missed."""

BEYOND = 0.003
"""Relative distance from the last value at which pairs that may be missing are looked for."""


class Stop:
    """Whether the pairs at each end are within the tolerance; called once per step, as it tracks residuals.

    A Ritz value is off by at most residual^2 / gap, where the gap is the distance to the rest of the spectrum (Parlett
    1998, theorem 11.7.1): here to the other Ritz values, each with its own residual taken off, and at least the
    residual. Divided by 1 - r, with r the rate at which residual^2 falls, it must be below `SHARE` times `tolerance`^2
    of the value, which keeps residuals below `tolerance`. The pair after the last must have no chance of overtaking it.

    A pair of which the starting vector has little shows late. The new row of the basis is a polynomial p of the matrix
    times the first row, and it has length 1. So a pair with value x and a part c in the first row has |c p(x)| <= 1:
    where p just beyond the last value is so large that c is below `UNSEEN`, no pair is likely to be missing there. For
    a single pair it is enough that the next one has converged somewhat (`GUARD`), which takes fewer products.
    """

    def __init__(self, k: int, which: str, tolerance: float) -> None:
        self.k, self.which, self.repeated = k, which, False
        upper, lower = {"magnitude": (k, 0), "largest": (k, 0), "smallest": (0, k), "both": (k - k // 2, k // 2)}[which]
        signs = (0 if which == "magnitude" else 1, -1)
        self.ends = [_End(sign, count, tolerance) for sign, count in zip(signs, (upper, lower), strict=True) if count]

    def __call__(self, state: Lanczos) -> bool:
        values, _, lengths = state.ritz()
        closed = [end.closed(state, values, lengths) for end in self.ends]  # each follows its own residuals
        self.repeated |= state.exhausted and state.used < state.size
        return all(closed) and state.used >= self.k

    def beyond(self, state: Lanczos, since: int) -> bool | None:
        """Whether the rows from `since` on show a pair beyond the last one of an end; None if that is still open."""
        seen = [end.beyond(state, since) for end in self.ends]
        self.repeated |= True in seen and state.used > self.k
        return True if True in seen else None if None in seen else False

    def sure(self) -> list[bool]:
        """Which ranks an unfinished search may state: those before the first open one of an end.

        Where there is a repeated value, as where the first vector's space ends or a random one shows it, others may be
        missing, and only an end itself is known.
        """
        counts = [min(end.close_run, 1) if self.repeated else end.close_run for end in self.ends]
        ranks = [rank < count for end, count in zip(self.ends, counts, strict=True) for rank in range(end.count)]
        lower = self.ends[-1].count if len(self.ends) == 2 else 0
        return ranks[: self.k - lower] + ranks[self.k - lower :][::-1]


class _End:
    """One end of a spectrum: `count` pairs of highest score, which is |value| for sign 0 and else sign x value."""

    def __init__(self, sign: int, count: int, tolerance: float) -> None:
        self.sign, self.count, self.tolerance = sign, count, tolerance
        self.before, self.close_run = np.full(count + 1, np.inf), 0

    def closed(self, state: Lanczos, values: np.ndarray, lengths: np.ndarray) -> bool:
        """Whether the pairs of this end look converged, and no other one can be beyond the last."""
        k, scores = self.count, self._scores(values)
        order = np.argsort(-scores, kind="stable")
        values, lengths, scores = values[order], lengths[order], scores[order]
        largest = magnitude(state, values)
        scales = self._scales(scores, largest)
        equal = np.maximum(self.tolerance**2 * scales, self._certain(scores, largest))
        gaps, lengths = _gaps(values, lengths, scales, equal)[: k + 1], lengths[: k + 1]
        rounding = UNITS * torch.finfo(state.basis.dtype).eps * largest
        floor, sizes = np.maximum(rounding, self._certain(scores[: k + 1], largest)), np.abs(values[: k + 1])
        exact = lengths <= np.where(sizes <= floor, floor, np.minimum(floor, KNOWN * sizes))
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.nan_to_num(lengths / self.before[: len(lengths)])
            still = (np.abs(change - 1) < STILL) & (not state.tridiagonal)
            rate = np.where(still, 0.0, np.minimum(np.clip(change, 0, 1) ** 2, 0.9))
            error = np.minimum(np.nan_to_num(lengths**2 / (gaps * (1 - rate))), lengths)
        self.before[: len(lengths)] = lengths
        limit = self.tolerance**2 * scales[: k + 1]
        close = (error <= np.where(still, 1.0, SHARE) * limit) | exact  # one that is still gets no smaller
        self.close_run = min(k, int(np.cumprod(close).sum()))
        if len(close) < k or not close[:k].all():
            return False
        if len(close) == k:
            return state.exhausted
        if not close[k] and scores[k] + min(lengths[k], 3 * error[k]) >= scores[k - 1]:
            return False
        if k == 1:
            return bool(exact[k] or error[k] <= GUARD * limit[k])
        return not state.tridiagonal or self._visible(state, 0, scores[k - 1], scales[k - 1])

    def beyond(self, state: Lanczos, since: int) -> bool | None:
        """Whether the rows from `since` on show a pair beyond those of the rows before; None if that is open."""
        known = _eigenvalues(state.projected[:since, :since])
        scores, largest = -np.sort(-self._scores(known)), magnitude(state, known)
        if len(scores) < self.count:
            return True
        last = scores[self.count - 1]
        scale = float(self._scales(last, largest))
        best = self._scores(_eigenvalues(state.projected[since:, since:])).max()
        rounding = UNITS * torch.finfo(state.basis.dtype).eps * largest
        if best > last + rounding + max(self.tolerance**2 * scale, float(self._certain(last, largest))):
            return True
        return False if state.exhausted or self._visible(state, since, last, scale) else None

    def _scores(self, values: np.ndarray) -> np.ndarray:
        return self.sign * values if self.sign else np.abs(values)

    def _scales(self, scores: np.ndarray, largest: float) -> np.ndarray:
        """What the tolerance of a pair is relative to."""
        return np.maximum(np.abs(scores), NEAR_ZERO * largest if self.sign else 0.0)

    def _certain(self, scores: np.ndarray, largest: float) -> np.ndarray:
        """Lengths of residuals that are enough near 0, whatever the gaps."""
        return np.where(np.abs(scores) < NEAR_ZERO * largest, CERTAIN * self.tolerance * largest * abs(self.sign), 0.0)

    def _visible(self, state: Lanczos, since: int, last: float, scale: float) -> bool:
        """Whether pairs `BEYOND` the last score would show in the rows from `since` on, which are tridiagonal."""
        projected, shift = state.projected[since:, since:], last + BEYOND * scale
        couplings = np.abs(np.append(np.diag(projected, 1), state.left))
        if not couplings.all():
            return True
        shifts = np.array([[shift * (self.sign or 1)], [shift * (self.sign or -1)]])
        with np.errstate(divide="ignore"):
            grown = np.log(np.abs(shifts - _eigenvalues(projected))).sum(axis=1) - np.log(couplings).sum()
        return bool((grown >= 0.5 * math.log(state.size) - math.log(UNSEEN)).all())


def magnitude(state: Lanczos, values: np.ndarray) -> float:
    """Norm of the matrix, as far as its Ritz values tell."""
    return float(max(np.abs(values).max(), state.left))


def _eigenvalues(matrix: np.ndarray) -> np.ndarray:
    """By torch, for threads of numpy's that wait for torch's make it up to twenty times slower."""
    return torch.linalg.eigvalsh(torch.from_numpy(matrix)).numpy()


def _gaps(values: np.ndarray, lengths: np.ndarray, scales: np.ndarray, equal: np.ndarray) -> np.ndarray:
    """Distance of each value to the nearest other one less that one's residual; from its residual to its scale.

    Values nearer than `equal` are one cluster, whose distance to the others counts.
    """
    separated = np.abs(values[:, None] - values)
    distances = np.where(separated <= equal[:, None], np.inf, separated - np.minimum(lengths, np.abs(values)))
    return np.minimum(np.maximum(distances.min(axis=1), lengths), scales)
