"""Bootstrap intervals of means of few values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from scipy.special import ndtr, stdtrit

from drift.config.random_keys import rng

Values = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Estimate:
    """A mean, its interval and the number of values; the ends are NaN for fewer than two values or an infinite one."""

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
    """Mean of the values, with a bootstrap interval that keeps its level for few values.

    The percentile interval of n values is too narrow by sqrt((n - 1) / n) and by the normal quantile in place of
    Student's. Its tails are therefore taken at Phi(-sqrt(n / (n - 1)) t), t Student's quantile; up to about five
    values this is the range of the values themselves.

    Source: Hesterberg 2015, The American Statistician 69, section 3.3 (expanded percentile interval).

    Args:
        values: Independent values, such as the gain in a window of rounds; NaN are left out. An infinite one counts,
            and there is no interval with it.
        level: Of the interval, a fraction.
        draws: Resamples.
        seed: Of the resampling; the same for the same values.
    """
    if not 0 < level < 1 or draws < 1:
        raise ValueError(f"level is {level:g} and draws is {draws}; give a level between 0 and 1 and 1 draw or more.")
    present = np.asarray(values, dtype=np.float64)
    present = present[~np.isnan(present)]
    n = len(present)
    if n < 2 or not np.isfinite(present).all():
        with np.errstate(invalid="ignore"):
            return Estimate(float(present.mean()) if n else nan, nan, nan, n)
    resampled = present[rng(seed, "bootstrap").integers(n, size=(draws, n))].mean(1)
    tail = float(ndtr(-sqrt(n / (n - 1)) * stdtrit(n - 1, (1 + level) / 2)))
    low, high = np.quantile(resampled, (tail, 1 - tail))
    return Estimate(float(present.mean()), float(low), float(high), n)
