"""The change from positive to negative of synthetic series."""

from __future__ import annotations

import numpy as np
import pytest

from drift.analyses.rounds.critical_point import LEAST, critical_point


def noise(rounds, seed=0, size=1.0):
    return size * np.random.default_rng(seed).normal(size=rounds)


def phases(first, second, before=20, after=30):
    return np.repeat([first, second], [before, after]).astype(float)


def dip(rounds=50, at=27):
    values = np.full(rounds, 0.4)
    values[at] = -3.0
    return values


def recovered():
    return np.repeat([1.0, -3.0, 1.0], [20, 30, 20])


SERIES = {
    "always positive": (np.full(50, 0.3), "no clear negative phase"),
    "always negative": (np.full(50, -0.3), "no clear positive phase"),
    "negative from round 2 on": (phases(1, -1, before=2), "no clear positive phase"),
    "one noisy dip": (dip() + noise(50, size=0.1), "no clear negative phase"),
    "a dip in the last round": (dip(at=49) + noise(50, size=0.1), "no clear negative phase"),
    "from negative to positive": (phases(-1, 1), "phase"),
    "it recovers": (recovered(), "does not last"),
    "zero throughout": (np.zeros(50), "no clear positive phase"),
    "few rounds": (phases(1, -1, 4, 4), "8 rounds are too few"),
    "no round": (np.zeros(0), "0 rounds are too few"),
    "nothing known": (np.full(50, np.nan), "0 rounds are too few"),
}


@pytest.mark.parametrize("name", SERIES)
def test_a_series_without_a_change_has_none_and_says_why(name):
    values, reason = SERIES[name]
    found = critical_point(np.arange(len(values)), values)
    assert reason in found.reason
    assert np.isnan([found.round, found.low, found.high]).all()


@pytest.mark.parametrize("at", [LEAST, 10, 25, 44])
def test_a_clear_change_is_located_and_its_interval_holds_it(at):
    values = phases(1, -1, at, 50 - at) + noise(50, seed=at, size=0.5)
    found = critical_point(np.arange(50), values)
    assert found.reason == ""
    assert abs(found.round - at) <= 1
    assert found.low <= at <= found.high
    assert found.before.positive and found.after.negative


def test_a_dip_before_and_one_round_above_zero_after_the_change_leave_it_where_it_is():
    values = phases(1, -1)
    values[8], values[40] = -0.9, 0.9
    assert critical_point(np.arange(50), values).round == 20


def test_rounds_are_named_by_their_numbers_and_missing_ones_left_out():
    values = phases(1, -1)
    values[[3, 20, 44]] = np.nan
    found = critical_point(np.arange(100, 150), values)
    assert found.round == 121
    assert 100 <= found.low <= 121 <= found.high < 150


def test_without_noise_the_interval_is_a_few_blocks_of_rounds():
    found = critical_point(np.arange(50), phases(1, -1))
    assert 20 - 9 <= found.low < 20 < found.high <= 20 + 9


def test_noise_around_any_mean_has_a_clear_change_in_few_cases():
    draws = [mean + noise(50, seed) for mean in (-0.3, 0.0, 0.3) for seed in range(60)]
    clear = [critical_point(np.arange(50), values, draws=1).reason == "" for values in draws]
    assert np.mean(clear) <= 0.05


def test_intervals_hold_the_change_of_noisy_series_as_often_as_said():
    series = [phases(1, -1) + noise(50, seed) for seed in range(60)]
    found = [critical_point(np.arange(50), values, draws=300) for values in series]
    clear = [one for one in found if not one.reason]
    assert len(clear) > 50
    assert np.mean([one.low <= 20 <= one.high for one in clear]) >= 0.9


def test_equal_input_gives_equal_intervals():
    values = phases(1, -1) + noise(50)
    assert critical_point(np.arange(50), values) == critical_point(np.arange(50), values)


@pytest.mark.parametrize("arguments", [(np.arange(3), np.zeros(4), 3), (np.arange(3), np.zeros(3), 0)])
def test_senseless_input_is_refused(arguments):
    rounds, values, window = arguments
    with pytest.raises(ValueError, match="as many values as rounds"):
        critical_point(rounds, values, window=window)
