"""The mean of a few values and its interval: one for every verdict, diagnosis, table and picture."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95
"""Of the interval, a fraction."""

INTERVAL = "95 % t interval"
"""What captions call it."""

FEW_SEEDS = 5
"""Seeds below which pictures and tables show each seed or their deviation in place of the interval."""

VERDICT = 3
"""Smallest number of seeds for a verdict on a claim."""


@dataclass(frozen=True)
class Estimate:
    """A mean of a few values with Student's interval; `p_at` tests a value.

    Args:
        value: NaN without a value.
        low, high: 95 % interval; NaN for fewer than two values or an infinite one.
        number: Of values.
        error: Standard error of the mean; NaN where the ends are.
        fisher: Whether the numbers above are Fisher's z of correlations, arctanh r.
    """

    value: float
    low: float
    high: float
    number: int
    error: float = float("nan")
    fisher: bool = False

    @property
    def positive(self) -> bool:
        """Whether the whole interval is above zero."""
        return self.low > 0

    @property
    def negative(self) -> bool:
        """Whether the whole interval is below zero."""
        return self.high < 0

    @property
    def shown(self) -> tuple[float, float, float]:
        """Mean, low and high in the unit of the effect; those of Fisher's z as correlations, within -1 to 1."""
        if self.fisher:
            return float(np.tanh(self.value)), float(np.tanh(self.low)), float(np.tanh(self.high))
        return self.value, self.low, self.high

    def inside(self, margin: float) -> bool:
        """Whether all of it is smaller than a margin."""
        return -margin < self.low and self.high < margin

    def excludes(self, value: float, margin: float = 0.0) -> bool:
        """Whether it contains neither a value nor one within a margin of it."""
        return self.low > value + margin or self.high < value - margin

    def p_at(self, value: float) -> float:
        """p of the two-sided test that the mean is a value; NaN without an error."""
        from scipy.special import stdtr

        if not self.error >= 0:
            return float("nan")
        away = abs(self.value - value)
        ratio = away / self.error if self.error > 0 else np.inf if away else 0.0
        return float(2 * stdtr(self.number - 1, -ratio))


def estimate(values: Sequence[float] | np.ndarray, level: float = LEVEL) -> Estimate:
    """`t_interval` of one column of values, such as the gains of a few rounds; NaN are left out."""
    column = np.asarray(values, dtype=np.float64)
    value, low, high = (float(end[0]) for end in t_interval(column[:, None], level))
    present = column[~np.isnan(column)]
    deviation = float(np.linalg.norm(present - value)) if np.isfinite(low) else float("nan")
    number = len(present)
    error = deviation / (number * (number - 1)) ** 0.5 if number > 1 else float("nan")
    return Estimate(value, low, high, number, error)


def t_interval(table: np.ndarray, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean of every column, and the lower and upper end of its interval, shape (R,) each.

    mean -+ t s / sqrt(n) with the sample deviation s (n - 1) and Student's quantile t of n - 1 degrees of freedom.

    Source: Student 1908, Biometrika 6.

    Args:
        table: Independent values in rows, one per seed, shape (n, R); NaN where a seed has none, which is left out. An
            infinite value counts. Successive rounds of a run are not independent; of these the interval is too narrow.
        level: Of the interval, a fraction.

    Returns:
        NaN for the mean of no value, and for the ends below two values or with an infinite one.
    """
    if not 0 < level < 1:
        raise ValueError(f"level is {level:g}; give the level of the interval as a fraction between 0 and 1.")
    from scipy.special import stdtrit  # here: it takes a tenth of a second to load

    present = ~np.isnan(table)
    count = present.sum(0)
    with np.errstate(invalid="ignore"):  # of infinite values
        total = np.where(present, table, 0.0).sum(0)
        mean = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
        lowest = np.where(present, table, np.inf).min(0, initial=np.inf)
        mean = mean.clip(lowest, np.where(present, table, -np.inf).max(0, initial=-np.inf))  # exact for equal values
        squares = (np.where(present, table - mean, 0.0) ** 2).sum(0)
        free = np.where(count > 1, count - 1, np.nan)
        reach = stdtrit(free, (1 + level) / 2) * np.sqrt(squares / free / count.clip(min=1))
        return mean, mean - reach, mean + reach
