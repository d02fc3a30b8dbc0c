"""The mean of one effect per seed, with its interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from drift.analyses.over_seeds import t_interval


@dataclass(frozen=True)
class Interval:
    """Mean of one effect per seed with Student's interval; `p_at` tests a value.

    Args:
        mean: NaN without a seed.
        low, high: 95 % interval; NaN below two seeds.
        number: Of seeds.
        error: Standard error of the mean; NaN below two seeds.
        fisher: Whether the numbers above are Fisher's z of correlations, arctanh r.
    """

    mean: float
    low: float
    high: float
    number: int
    error: float = float("nan")
    fisher: bool = False

    @property
    def shown(self) -> tuple[float, float, float]:
        """Mean, low and high in the unit of the effect; those of Fisher's z as correlations, within -1 to 1."""
        if self.fisher:
            return float(np.tanh(self.mean)), float(np.tanh(self.low)), float(np.tanh(self.high))
        return self.mean, self.low, self.high

    def inside(self, margin: float) -> bool:
        """Whether all of it is smaller than a margin."""
        return -margin < self.low and self.high < margin

    def excludes(self, value: float, margin: float = 0.0) -> bool:
        """Whether it contains neither a value nor one within a margin of it."""
        return self.low > value + margin or self.high < value - margin

    def p_at(self, value: float) -> float:
        """p of the two-sided test that the mean is a value."""
        if self.number < 2:
            return float("nan")
        away = abs(self.mean - value)
        ratio = away / self.error if self.error > 0 else np.inf if away else 0.0
        return float(2 * stats.t.sf(ratio, self.number - 1))


def over_seeds(values: Sequence[float]) -> Interval:
    """Mean of one value per seed, with Student's interval for paired differences."""
    nan, count = float("nan"), len(values)
    if count < 2:
        return Interval(float(values[0]) if count else nan, nan, nan, count)
    if len(set(values)) == 1:  # without the rounding of their mean
        return Interval(mean := float(values[0]), mean, mean, count, 0.0)
    mean, low, high = (float(end[0]) for end in t_interval(np.array(values, dtype=np.float64)[:, None]))
    return Interval(mean, low, high, count, float(np.std(values, ddof=1) / np.sqrt(count)))
