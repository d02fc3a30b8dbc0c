"""Correlations of weights with what clients hold, against scipy and numbers by hand."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from drift.analyses.rounds.weight_factors import class_balance, pearson, pooled_factors, weight_factors
from tests.drift import hand
from tests.drift.holding import LabelRun, records

HELD = [[0, 0], [0, 1, 2, 0, 1, 2, 2], [1, 1, 1, 2], [], [0, 1, 2, 1, 2], [2] * 9]


def run_of(*groups):
    return LabelRun(records(*groups), hand.experiment(number=6), d=4, held=HELD)


def test_pearson_and_its_interval_equal_those_of_scipy():
    x, y = hand.random(9, seed=1).numpy(), hand.random(9, seed=2).numpy()
    expected = stats.pearsonr(x, y)
    interval = expected.confidence_interval(0.9)
    found = pearson(x, y, 0.9)
    np.testing.assert_allclose(found, (expected.statistic, interval.low, interval.high), rtol=1e-12)


def test_constant_or_few_values_have_no_correlation_or_interval():
    assert np.isnan(pearson(np.full(6, 0.1), np.arange(6.0))).all()
    assert np.isnan(pearson(np.array([np.nan, 1.0]), np.array([1.0, 2.0]))).all()
    r, low, high = pearson(np.array([1.0, 2, 4]), np.array([1.0, 2, 3]))
    assert 0.9 < r < 1
    assert np.isnan([low, high]).all()


def test_a_perfect_correlation_has_an_interval_at_one():
    r, low, high = pearson(np.arange(7.0), 3 * np.arange(7.0) + 1)
    assert (r, low, high) == pytest.approx((1, 1, 1))


def test_class_balance_is_the_reciprocal_variance_and_clipped():
    found = class_balance(np.array([[1.0, 0, 0], [1 / 3, 1 / 3, 1 / 3]]))
    np.testing.assert_allclose(found, [1 / (2 / 9), 1e8])


def test_factors_are_those_of_the_table_and_weights_are_summed_over_rounds():
    run = run_of(([5, 1, 0], [9, 7, 2], [0.2, 0.5, 0.1]), ([1, 4, 2], [7, 5, 4], [0.3, 0.3, 0.6]))
    found = weight_factors(run)
    np.testing.assert_array_equal(found["size"], [2, 7, 4, 0, 5, 9])
    variance = np.var([0, 0.75, 0.25])
    assert float(found["balance"].sel(client=2)) == pytest.approx(1 / variance)
    assert float(found["product"].sel(client=2)) == pytest.approx(4 / variance)
    np.testing.assert_allclose(found["weight"], [1 / 8, 5 / 8 + 1 / 4, 0.5, np.nan, 0.25, 0.25])
    known = [0, 1, 2, 4, 5]
    expected = stats.pearsonr(found["size"].values[known], found["weight"].values[known])
    assert float(found.pearson.sel(factor="size")) == pytest.approx(expected.statistic)
    assert float(found.low.sel(factor="size")) == pytest.approx(expected.confidence_interval().low)
    over = weight_factors(run, over="mean")
    assert float(over["weight"].sel(client=1)) == pytest.approx((5 / 8 + 1 / 4) / 2)


def test_clients_without_samples_do_not_count_though_they_have_a_weight():
    run = run_of(([5, 1, 0, 3], [9, 7, 2, 0], [0.2, 0.5, 0.1, 0.2]), ([2, 4], [4, 5], None))
    found = weight_factors(run)
    keep = [0, 1, 2, 4, 5]
    assert np.isnan(found.balance.sel(client=3))
    assert np.isnan(found["weight"].sel(client=3))
    for factor in ("size", "balance"):
        expected = stats.pearsonr(found[factor].values[keep], found["weight"].values[keep]).statistic
        assert float(found.pearson.sel(factor=factor)) == pytest.approx(expected)


def test_pooled_correlations_are_those_of_all_clients_together():
    parts = [
        weight_factors(run_of(([5, 1, 0], [9, 7, 2], [0.2, 0.5, 0.1]))),
        weight_factors(run_of(([4, 2, 1, 0], [5, 4, 7, 2], [0.4, 0.2, 0.3, 0.1]))),
    ]
    found = pooled_factors(parts)
    x = np.concatenate([part["balance"].values for part in parts])
    y = np.concatenate([part["weight"].values for part in parts])
    known = np.isfinite(x) & np.isfinite(y)
    assert float(found.pearson.sel(factor="balance")) == pytest.approx(stats.pearsonr(x[known], y[known]).statistic)
    assert found.sizes["client"] == 12


def test_rounds_without_clients_leave_everything_missing():
    found = weight_factors(run_of(([], [], None)))
    assert isinstance(found, xr.Dataset)
    assert np.isnan(found["weight"]).all()
    assert np.isnan(found.pearson).all()


def test_senseless_options_are_refused():
    with pytest.raises(ValueError, match="over is 'max'"):
        weight_factors(run_of(), over="max")
    with pytest.raises(ValueError, match=r"confidence is 95"):
        weight_factors(run_of(([5, 1, 0], [9, 7, 2], None)), confidence=95)
