"""How sure a mean of a few values is: intervals by drawing the values again with replacement."""

from __future__ import annotations

import numpy as np

from drift.keys import rng


def interval(values: np.ndarray, *, level: float = 0.95, draws: int = 4000, seed: int = 0) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean; for paired values give their differences. Missing values are left out.

    With few values it is too narrow: of three, it is little more than their range.

    Source: Efron and Tibshirani 1993, chapter 13.

    Args:
        values: Shape (n,).
        level: Share of the means inside, fraction.

    Returns:
        Lower and upper end; NaN with fewer than two values.
    """
    held = np.asarray(values, dtype=np.float64)
    held = held[np.isfinite(held)]
    if len(held) < 2:
        return float("nan"), float("nan")
    drawn = rng(seed, "bootstrap").integers(0, len(held), size=(draws, len(held)))
    low, high = np.quantile(held[drawn].mean(1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
