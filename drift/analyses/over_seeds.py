"""The mean over seeds and its interval: one for every verdict, table and picture."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

LEVEL = 0.95
"""Of the interval, a fraction."""

INTERVAL = "95 % t interval"
"""What captions call it."""

FEW_SEEDS = 5
"""Seeds below which pictures and tables show each seed or their deviation in place of the interval."""

VERDICT = 3
"""Smallest number of seeds for a verdict on a claim."""


def t_interval(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean of every column, and the lower and upper end of its interval, shape (R,) each.

    mean -+ t s / sqrt(n) with the sample deviation s (n - 1) and Student's quantile t of n - 1 degrees of freedom.

    Source: Student 1908, Biometrika 6.

    Args:
        table: Independent values in rows, one per seed, shape (n, R); NaN where a seed has none, which is left out. An
            infinite value counts.

    Returns:
        NaN for the mean of no value, and for the ends below two values or with an infinite one.
    """
    present = ~np.isnan(table)
    count = present.sum(0)
    with np.errstate(invalid="ignore"):  # of infinite values
        total = np.where(present, table, 0.0).sum(0)
        mean = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
        squares = (np.where(present, table - mean, 0.0) ** 2).sum(0)
        free = np.where(count > 1, count - 1, np.nan)
        reach = stdtrit(free, (1 + LEVEL) / 2) * np.sqrt(squares / free / count.clip(min=1))
        return mean, mean - reach, mean + reach
