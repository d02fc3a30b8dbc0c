"""Intervals around means of few values, by resampling them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from scipy import stats

from drift.config.random_keys import rng

Values = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Estimate:
    """A mean, its interval and how many values it is of; NaN ends where these are fewer than two."""

    value: float
    low: float
    high: float
    number: int

    @property
    def positive(self) -> bool:
        """Whether the whole interval is above zero."""
        return self.low > 0

    @property
    def negative(self) -> bool:
        """Whether the whole interval is below zero."""
        return self.high < 0


def mean_interval(values: Values, *, level: float = 0.95, draws: int = 4000, seed: int = 0) -> Estimate:
    """Mean of the finite values, with a bootstrap interval that keeps its level for few values.

    The percentile interval of n values is too narrow by sqrt((n - 1) / n) and by the normal quantile in place of
    Student's. Its tails are therefore taken at Phi(-sqrt(n / (n - 1)) t), t Student's quantile; up to about five
    values this is the range of the values themselves.

    Source: Hesterberg 2015, The American Statistician 69, section 3.3 (expanded percentile interval).

    Args:
        values: One independent value each, such as the gain in a window of rounds; NaN are left out.
        level: Of the interval, a fraction.
        draws: Resamples.
        seed: Of the resampling; the same for the same values.
    """
    if not 0 < level < 1 or draws < 1:
        raise ValueError(f"level is {level:g} and draws is {draws}; give a level between 0 and 1 and 1 draw or more.")
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    n = len(known)
    if n < 2:
        return Estimate(float(known.mean()) if n else nan, nan, nan, n)
    resampled = known[rng(seed, "bootstrap").integers(n, size=(draws, n))].mean(1)
    tail = float(stats.norm.cdf(-sqrt(n / (n - 1)) * stats.t.ppf((1 + level) / 2, n - 1)))
    low, high = np.quantile(resampled, (tail, 1 - tail))
    return Estimate(float(known.mean()), float(low), float(high), n)


def paired_interval(
    first: Values, second: Values, *, level: float = 0.95, draws: int = 4000, seed: int = 0
) -> Estimate:
    """Mean of first minus second, value by value, with its interval.

    Raises:
        ValueError: If the numbers of values differ.
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != other.shape:
        raise ValueError(f"there are {one.size} values and {other.size} to pair them with; give equally many.")
    return mean_interval(one - other, level=level, draws=draws, seed=seed)
