"""Which rows of a table are best, and which cannot be told from the best one."""

from __future__ import annotations

from typing import Literal

import numpy as np
import xarray as xr
from scipy import stats

Mark = Literal["", "best", "tie"]
"""A row's place in a column: best by its mean, or not to be told from the best."""

LEVEL = 0.95
"""Of the intervals, a fraction."""

_LARGER = ("accuracy", "auc", "hit rate", "ndcg", "hr@", "coherence", "advantage")
_SMALLER = ("error", "loss", "drop", "lost", "rounds to", "barrier", "time over", "nll", "calibration")


def better(values: xr.DataArray, column: str = "") -> Literal["", "larger", "smaller"]:
    """Whether larger or smaller values are better, by the name and unit of a variable; empty where neither is.

    The attribute `better` of the variable decides where it is set.
    """
    if (stated := values.attrs.get("better")) is not None:
        return stated if stated in ("larger", "smaller") else ""
    unit = str(values.attrs.get("units", ""))
    if unit in ("MAC", "bytes", "s"):  # seconds of different times are not comparable, their ratio is
        return "" if unit == "s" else "smaller"
    name = f"{values.name} {values.attrs.get('long_name', '')} {column}".lower()
    for words, answer in ((_SMALLER, "smaller"), (_LARGER, "larger")):
        if any(word in name for word in words):
            return answer  # type: ignore[return-value]  # the pairs above hold literals
    return ""


def marks(table: np.ndarray, *, larger: bool, samples: int | None = None) -> list[Mark]:
    """The best row by its mean over seeds, and the rows whose difference to it has an interval that contains 0.

    The interval is Student's, of the paired differences where both rows have two or more seeds in common (these share
    partition, initial model and cohorts), else Welch's. With one seed it is the error of accuracies on so many test
    samples, sqrt(2 p (1 - p) / n); without samples a single seed allows no statement, and there are no ties but equal
    values. Where every row is marked, none is.

    Source: Student 1908; Welch 1947.

    Args:
        table: Values of the rows by seed, shape (rows, seeds), NaN where a row has no such seed.
        larger: Larger values are better.
        samples: Test samples behind values that are fractions of them.
    """
    counts = np.isfinite(table).sum(1)
    means = np.array([np.nanmean(row) if count else np.nan for row, count in zip(table, counts, strict=True)])
    if (counts > 0).sum() < 2:
        return [""] * len(table)
    first = int(np.nanargmax(means if larger else -means))
    states: list[Mark] = [
        "best" if place == first else "tie" if count and equal(table[first], row, samples) else ""
        for place, (row, count) in enumerate(zip(table, counts, strict=True))
    ]
    return [""] * len(table) if all(state or not count for state, count in zip(states, counts, strict=True)) else states


def equal(best: np.ndarray, other: np.ndarray, samples: int | None = None) -> bool:
    """Whether the interval of the difference of two rows (seeds,) contains 0; see `marks`."""
    both = np.isfinite(best) & np.isfinite(other)
    first, second = best[np.isfinite(best)], other[np.isfinite(other)]
    if both.sum() >= 2:
        return _holds_zero(best[both] - other[both])
    if min(len(first), len(second)) >= 2:
        if np.ptp(first) == np.ptp(second) == 0:
            return bool(first[0] == second[0])
        interval = stats.ttest_ind(first, second, equal_var=False).confidence_interval(LEVEL)
        return bool(interval.low <= 0 <= interval.high)
    difference = abs(float(first.mean() - second.mean()))
    if samples is None:
        return difference == 0
    p = min(max(float(first.mean()), 0.0), 1.0)
    return difference <= max(stats.norm.ppf((1 + LEVEL) / 2) * np.sqrt(2 * p * (1 - p) / samples), 1 / samples)


def _holds_zero(differences: np.ndarray) -> bool:
    if np.ptp(differences) == 0:
        return bool(differences[0] == 0)
    interval = stats.ttest_1samp(differences, 0.0).confidence_interval(LEVEL)
    return bool(interval.low <= 0 <= interval.high)
