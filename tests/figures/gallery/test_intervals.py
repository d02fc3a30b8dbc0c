"""Five numbers of five seeds have one interval, in verdicts, curves, tables and numbers over rounds."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from drift.analyses.over_seeds import INTERVAL, estimate, t_interval
from drift.analyses.rounds.critical_point import critical_point
from figures.axes import curves
from figures.gallery import numbers_rounds
from figures.looks import look, style
from figures.texts import best_rows

VALUES = np.array([0.3, 1.7, 0.9, 4.1, 2.2])
ENDS = stats.t.interval(0.95, 4, loc=VALUES.mean(), scale=stats.sem(VALUES))


def test_five_seeds_have_the_same_interval_everywhere():
    found = {}
    found["curve"] = tuple(float(end[0]) for end in curves._summary(VALUES[:, None], "interval", False)[1:])
    half = best_rows.spread(VALUES, deviation=False)
    found["table"] = (VALUES.mean() - half, VALUES.mean() + half)
    column = xr.DataArray(
        VALUES[:, None], {"run": range(5), "group": ("run", ["a"] * 5), "round": [0]}, ["run", "round"]
    )
    ds = numbers_rounds._with_means(xr.Dataset({"value": column}))
    found["numbers-rounds"] = (float(ds.group_low[0, 0]), float(ds.group_high[0, 0]))
    diagnosed = estimate(VALUES)
    found["diagnosis and verdict"] = (diagnosed.low, diagnosed.high)
    test = stats.ttest_1samp(VALUES, 0.7)
    assert diagnosed.p_at(0.7) == pytest.approx(test.pvalue, rel=1e-12)
    assert diagnosed.error == pytest.approx(stats.sem(VALUES), rel=1e-12)
    phase = critical_point(range(11), [*VALUES, *-VALUES, 0], window=1).before  # too short for a clear point
    found["phase"] = (phase.low, phase.high)
    for place, ends in found.items():
        np.testing.assert_allclose(ends, ENDS, rtol=1e-12, err_msg=place)


@pytest.mark.parametrize("number", [2, 3, 4, 5])
def test_the_interval_of_few_values_holds_their_mean_as_often_as_it_says(number):
    samples = np.random.default_rng(number).standard_normal((4000, number))
    covered = [own.low <= 0 <= own.high for own in map(estimate, samples)]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.012)


def test_other_levels_are_those_of_scipy_and_bad_ones_are_refused():
    found = estimate(VALUES, 0.8)
    ends = stats.t.interval(0.8, 4, loc=VALUES.mean(), scale=stats.sem(VALUES))
    np.testing.assert_allclose((found.low, found.high), ends)
    assert not found.negative and found.positive and estimate([]).number == 0
    with pytest.raises(ValueError, match="level is 1;"):
        estimate(VALUES, 1)


def test_equal_values_have_no_error_and_missing_ones_do_not_count():
    equal = estimate([0.1, np.nan, 0.1, 0.1])  # their sum, divided, is 0.10000000000000002
    assert (equal.value, equal.low, equal.high, equal.number, equal.error) == (0.1, 0.1, 0.1, 3, 0.0)
    assert (equal.p_at(0.1), equal.p_at(0.2)) == (1, 0)
    one = estimate([np.nan, 2.0])
    assert one.number == 1 and np.isnan([one.error, one.p_at(0), estimate([1, 2, np.inf]).p_at(0)]).all()


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


def test_an_infinite_seed_makes_the_mean_infinite_and_leaves_no_interval():
    table = np.array([[1.0, 2, 1, np.inf], [np.inf, np.inf, 3, -np.inf], [3, np.nan, np.nan, 1]])
    mean, low, high = t_interval(table)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(mean, [np.mean(table[:, 0]), np.inf, 2, np.nan])
    assert np.isnan([low[[0, 1, 3]], high[[0, 1, 3]]]).all() and np.isfinite([low[2], high[2]]).all()
    infinite = estimate([1.0, np.inf, 3, np.nan])
    assert (infinite.value, infinite.number) == (np.inf, 3) and np.isnan([infinite.low, infinite.high]).all()
    assert np.isnan(best_rows.spread(np.array([1.0, np.inf, 3]), deviation=True))
    rows = np.array([[1.0, 1.1, 0.9], [0.5, np.inf, 0.5], [1.02, 1.08, 0.95]])
    assert best_rows.marks(rows, larger=False) == ["best", "", "tie"]
    for kind in ("interval", "band"):
        middle, low, high = curves._summary(table, kind, log=False)
        assert middle[0] == np.inf and np.isnan([low[0], high[0]]).all()


def test_a_picture_says_where_seeds_are_infinite_or_missing(monkeypatch):
    for value, said in ((np.inf, "gaps: a seed is infinite"), (np.nan, "some seeds lack a value")):
        values = xr.DataArray([[1.0, 2], [1, value]], {"seed": [0, 1], "round": [0, 1]}, ["seed", "round"])
        said_now: list[str] = []
        monkeypatch.setattr(look.Drawing, "remark", lambda self, text, said_now=said_now: said_now.append(text))
        _, axs = style.panels(1, 1)
        curves.line_with_band(values, ax=axs[0, 0], over="round")
        assert said in said_now
        middle = axs[0, 0].lines[0].get_ydata()
        np.testing.assert_array_equal(middle, [1, np.inf if value == np.inf else 2])
