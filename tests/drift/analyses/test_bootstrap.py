"""Bootstrap intervals of means of few values."""

import numpy as np
import pytest

from drift.analyses.bootstrap import mean_interval


def test_interval_of_many_values_is_students():
    values = np.random.default_rng(1).normal(2.0, 3.0, size=400)
    found = mean_interval(values, draws=20_000)
    half = 1.966 * values.std(ddof=1) / 20
    assert found.value == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.03)


def test_interval_of_few_values_is_their_range():
    found = mean_interval([1.0, 2.0, 6.0])
    assert (found.value, found.low, found.high, found.number) == (3.0, 1.0, 6.0, 3)
    assert found.positive and not found.negative


def test_interval_covers_the_mean_as_often_as_it_says():
    source = np.random.default_rng(2)
    samples = source.normal(size=(400, 12))
    covered = [found.low <= 0 <= found.high for found in (mean_interval(row, draws=1000) for row in samples)]
    assert 0.92 <= np.mean(covered) <= 0.98  # the plain percentile interval covers 0.91


def test_fewer_than_two_values_have_no_interval():
    one, none = mean_interval([3.0, np.nan]), mean_interval([np.nan])
    assert (one.value, one.number) == (3.0, 1) and np.isnan(one.low) and not one.positive
    assert np.isnan(none.value) and none.number == 0


def test_bad_values_are_refused():
    with pytest.raises(ValueError, match="level is 1 "):
        mean_interval([1.0, 2.0], level=1)
