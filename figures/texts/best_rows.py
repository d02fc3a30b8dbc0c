"""Which rows of a table are best, and which cannot be told from the best one."""

from collections.abc import Collection
from typing import Literal

import numpy as np
import xarray as xr

from drift.analyses.over_seeds import FEW_SEEDS, INTERVAL, LEVEL, t_interval
from figures.selection import sampling_error

Mark = Literal["", "best", "tie", "open"]
"""A row's place in a column: best by its mean, or not to be told from the best; all are open where none is best."""

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
    name = f"{values.name} {values.attrs.get('long_name', '')} {column}".lower().replace("_", " ")
    if {"cost", "costs"} & (terms := set(name.split())):  # of something that a reader may want or not
        return ""
    if {"gain", "gained", "gains", "advantage", "reduction"} & terms:  # also of a loss or an error
        return "larger"
    for words, answer in ((_SMALLER, "smaller"), (_LARGER, "larger")):
        if any(word in name for word in words):
            return answer  # type: ignore[return-value]  # the pairs above hold literals
    return ""


def meaning(marked: Collection[Mark], seeds: int) -> str:
    """What the marks of a table of so many seeds are, in words; empty without any."""
    if "best" not in marked:
        return "no number is bold, as none is clearly the best of its column" * ("open" in marked)
    unsure = f"may be as good ({100 * LEVEL:g} % interval of the difference), or better than such a row"
    tie = "equal to the best" if seeds == 2 else unsure
    texts = ["bold: best of its column", *[f"italics: {tie}"] * ("tie" in marked)]
    texts += ["a column without bold has no clear best"] * ("open" in marked)
    texts += ["two seeds are too few for an interval of the difference"] * (seeds == 2)
    return "; ".join(texts)


def column_marks(ds: xr.Dataset, values: xr.DataArray, over: str, column: str = "") -> list[Mark]:
    """Marks of the rows of a column, in pictures and texts: none where no end is better or differences are shown.

    Args:
        ds: The table; its attribute `test_samples`, or `samples`, is the number behind accuracies.
        values: Over the rows, and perhaps `seed`.
        over: Dimension of the rows.
        column: Name of the column.
    """
    kind = better(values, column)
    if not kind or ds.attrs.get("paired_to"):
        return [""] * values.sizes[over]
    numbers = values.transpose(over, "seed") if "seed" in values.dims else values.expand_dims(seed=1, axis=1)
    is_fraction = sampling_error.accuracy_kind(values) in ("accuracy", "error") and values.attrs["units"] == "fraction"
    samples = int(ds.attrs.get("test_samples", ds.attrs.get("samples", 0))) or None
    return marks(numbers.values, larger=kind == "larger", samples=samples if is_fraction else None)


def range_marks(ds: xr.Dataset, name: str, direction: str) -> list[Mark]:
    """Marks of rows that are measured with a range, NAME_low to NAME_high: a row whose range meets the best's ties."""
    low, high, value = (ds[key].values for key in (f"{name}_low", f"{name}_high", name))
    if not direction or (~np.isnan(value)).sum() < 2 or np.isnan(low[~np.isnan(value)]).any():  # measured once
        return [""] * len(value)
    first = int(np.nanargmax(value if direction == "larger" else -value))
    meets = (low <= high[first]) & (high >= low[first])
    states: list[Mark] = ["best" if index == first else "tie" if meets[index] else "" for index in range(len(value))]
    return ["open"] * len(value) if all(states) else states


def spread(values: np.ndarray, *, deviation: bool) -> float:
    """Standard deviation over seeds, else half the 95 % t interval of their mean; NaN of one or an infinite one."""
    present = values[~np.isnan(values)]
    if len(present) < 2 or np.isinf(present).any():
        return float("nan")
    if deviation:
        return float(present.std(ddof=1))
    middle, _, high = t_interval(present[:, None])
    return float(high[0] - middle[0])


def deviates(table: np.ndarray) -> bool:
    """Whether the spread in a table (..., seeds) is the deviation: where any of several seeds are fewer than five."""
    counts = (~np.isnan(table)).sum(-1)
    return int(min(counts[counts > 1], default=0)) < FEW_SEEDS


def spread_text(table: np.ndarray) -> str:
    """What `spread` is in all cells of a table (..., seeds), and of which seeds, in words."""
    counts = {*map(int, (~np.isnan(table)).sum(-1).flat)} - {0}
    what = f"mean ± {'standard deviation' if deviates(table) else f'half the {INTERVAL} of the mean'}"
    return what + (f" of {max(counts)} seeds" if len(counts) == 1 else "; in brackets: number of seeds")


def marks(table: np.ndarray, *, larger: bool, samples: int | None = None) -> list[Mark]:
    """The best row by its mean over seeds, and the rows whose difference to it has an interval that contains 0.

    A row nearer to the best than such a row is a tie too: no row is marked above a better one that is not.

    The interval is Student's, of the paired differences where both rows have seeds in common (these share partition,
    initial model and cohorts), else Welch's. That of two seeds is too wide to say anything: then equal means alone are
    ties. With one seed it is the error of accuracies on so many test samples, sqrt(2 p (1 - p) / n) with the p of both
    that is nearer to 1/2; without samples a single seed allows no statement, and there are no ties but equal values.
    All are open where every row would be marked, and where the best mean is so for want of seeds that others have, and
    is worse in those in common.

    Source: Student 1908; Welch 1947.

    Args:
        table: Values of the rows by seed, shape (rows, seeds), NaN where a row has no such seed.
        larger: Larger values are better.
        samples: Test samples behind values that are fractions of them.
    """
    counts = (~np.isnan(table)).sum(1)
    means = np.array([np.nanmean(row) if count else np.nan for row, count in zip(table, counts, strict=True)])
    if (counts > 0).sum() < 2:
        return [""] * len(table)
    first = int(np.nanargmax(means if larger else -means))
    if any(_loses(table[first], row, larger) for row in table):
        return ["open"] * len(table)
    states: list[Mark] = [
        "best" if index == first else "tie" if counts.max() != 2 and count and equal(table[first], row, samples) else ""
        for index, (row, count) in enumerate(zip(table, counts, strict=True))
    ]
    with np.errstate(invalid="ignore"):  # of infinite means
        away = np.where(np.isclose(means, means[first], rtol=1e-9, atol=0), 0.0, np.abs(means - means[first]))
    furthest = max(far for far, state in zip(away, states, strict=True) if state and not np.isnan(far))
    states = [state or ("tie" if far <= furthest else "") for state, far in zip(states, away, strict=True)]
    all_tie = all(state or not count for state, count in zip(states, counts, strict=True))
    return ["open"] * len(table) if all_tie else states


def _loses(best: np.ndarray, other: np.ndarray, larger: bool) -> bool:
    """Whether a row is worse than another in the mean of the seeds (seeds,) that both have."""
    both = ~np.isnan(best) & ~np.isnan(other)
    with np.errstate(invalid="ignore"):  # of infinite values
        return bool(both.any() and ((best - other)[both].mean() * (1 if larger else -1) < -1e-12))


def equal(best: np.ndarray, other: np.ndarray, samples: int | None = None) -> bool:
    """Whether the interval of the difference of two rows (seeds,) contains 0; see `marks`."""
    both = ~np.isnan(best) & ~np.isnan(other)
    first, second = best[~np.isnan(best)], other[~np.isnan(other)]
    if np.isinf(first).any() or np.isinf(second).any():
        return bool(first.mean() == second.mean())
    if both.sum() >= 2:
        _, low, high = t_interval((best[both] - other[both])[:, None])
        return bool(low[0] <= 0 <= high[0])
    if min(len(first), len(second)) >= 2:
        if np.ptp(first) == np.ptp(second) == 0:
            return bool(first[0] == second[0])
        from scipy import stats  # here: it takes a third of a second to load

        interval = stats.ttest_ind(first, second, equal_var=False).confidence_interval(LEVEL)
        return bool(interval.low <= 0 <= interval.high)
    difference = abs(float(first.mean() - second.mean()))
    if samples is None:
        return difference == 0
    p = sampling_error.widest(float(first.mean()), float(second.mean()))
    return difference <= sampling_error.chance(p, samples)
