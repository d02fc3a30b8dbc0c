"""Five numbers of five seeds have one interval, in verdicts, curves, tables, numbers over rounds and the explorer."""

from types import SimpleNamespace

import numpy as np
import xarray as xr
from scipy import stats

from drift.analyses.over_seeds import INTERVAL, t_interval
from drift.claims.claim import over_seeds
from figures.axes import curves
from figures.explore.record.lines import Line, interval_lines, summaries
from figures.gallery import numbers_rounds
from figures.texts import best_rows

VALUES = np.array([0.3, 1.7, 0.9, 4.1, 2.2])
ENDS = stats.t.interval(0.95, 4, loc=VALUES.mean(), scale=stats.sem(VALUES))


def test_five_seeds_have_the_same_interval_everywhere():
    verdict = over_seeds(VALUES)
    found = {"verdict": (verdict.low, verdict.high)}
    found["curve"] = tuple(float(end[0]) for end in curves._summary(VALUES[:, None], "interval", False)[1:])
    half = best_rows.spread(VALUES)
    found["table"] = (VALUES.mean() - half, VALUES.mean() + half)
    column = xr.DataArray(
        VALUES[:, None], {"run": range(5), "group": ("run", ["a"] * 5), "round": [0]}, ["run", "round"]
    )
    ds = numbers_rounds._with_means(xr.Dataset({"value": column}))
    found["numbers-rounds"] = (float(ds.group_low[0, 0]), float(ds.group_high[0, 0]))
    run = SimpleNamespace(label="fedavg")
    lines = [
        Line(str(seed), "a", run, xr.DataArray([value], {"round": [0]}, ["round"])) for seed, value in enumerate(VALUES)
    ]
    found["explorer"] = tuple(float(end[0]) for end in interval_lines(lines))
    estimate = summaries(lines)[0].estimate
    found["explorer's table"] = (estimate.low, estimate.high)
    for place, ends in found.items():
        np.testing.assert_allclose(ends, ENDS, rtol=1e-12, err_msg=place)


def test_missing_seeds_are_left_out_and_one_seed_has_no_interval():
    table = np.column_stack([[1.0, 2, 4], [1, np.nan, 4], [np.nan, 5, np.nan], [np.nan] * 3, [1e8, 1e8 + 1, 1e8 + 3]])
    mean, low, high = t_interval(table)
    np.testing.assert_allclose(mean, [7 / 3, 2.5, 5, np.nan, 1e8 + 4 / 3])
    for column in (0, 1, 4):
        own = table[np.isfinite(table[:, column]), column]
        ends = stats.t.interval(0.95, len(own) - 1, loc=own.mean(), scale=stats.sem(own))
        np.testing.assert_allclose((low[column], high[column]), ends, rtol=1e-9)
    assert np.isnan(low[2:4]).all() and np.isnan(high[2:4]).all()


def test_captions_name_the_interval():
    assert INTERVAL == "95 % t interval"
    assert curves._TEXTS["interval"] == "mean and 95 % t interval of {count} seeds"
    assert numbers_rounds._TEXTS["low"] == "lower end of its 95 % t interval"
