"""IMA over FedEve without gradients: the step grows or shrinks as the characteristic polynomial of the two says.

With b = w - M, the model that FedEve predicts, and y = 1 / z, the recursion b_t - mean(b_t, .., b_{t-P+1}) = D,
M' = M + G (D - M), w' = w - M' has the solutions z^t of

    z + G (2 - y) sum_j (P - 1 - j) y^j / P - (1 - G) = 0,   j from 0 to P - 2.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from drift.methods.fedeve import FedEve
from drift.methods.ima import IMA
from tests.drift import hand

ROUNDS = 120


def radius(window: int, gain: float) -> float:
    """Largest modulus of the roots."""
    means = np.array([window - 1 - lag for lag in range(window - 1)]) / window
    powers = gain * np.convolve([2.0, -1.0], means)
    polynomial = np.concatenate([[1.0], powers])
    polynomial[1] -= 1 - gain
    return float(np.abs(np.roots(polynomial)).max())


def steps(method: IMA) -> torch.Tensor:
    """Lengths of the steps of ROUNDS rounds: one impulse of two clients that agree (G = 1), then no gradient."""
    updates = torch.zeros(ROUNDS, 2, 3, dtype=torch.float64)
    updates[0] = hand.vector(1, -2, 0.5)
    run = hand.play(method, hand.setting(method, rounds=ROUNDS), hand.vector(1, 2, 3), updates, sizes=[1, 1])
    assert all(float(outcome.extras["gain"]) == 1 for outcome in run.outcomes)
    ends = torch.stack([run.groups[0].theta, *(outcome.end for outcome in run.outcomes)])
    return (ends[1:] - ends[:-1]).norm(dim=1)


@pytest.mark.parametrize("window", [2, 5, 10])
def test_the_step_grows_at_the_rate_of_the_largest_root_where_the_mean_goes_into_the_filter(window):
    lengths = steps(IMA(base=FedEve(), window=window, start=0, late="na"))
    grown = float(lengths[-1] / lengths[-21]) ** (1 / 20)
    assert radius(window, 1.0) > 1.3
    assert grown == pytest.approx(radius(window, 1.0), rel=1e-6)


def test_a_window_of_five_is_stable_up_to_a_gain_of_ten_elevenths():
    assert radius(5, 10 / 11 - 1e-6) < 1 < radius(5, 10 / 11 + 1e-6)


@pytest.mark.parametrize("window", [2, 5, 10])
def test_the_step_vanishes_where_the_mean_is_taken_after_the_filter(window):
    lengths = steps(IMA(base=FedEve(), window=window, start=0, late="na", placement="post"))
    assert float(lengths[-1]) < 1e-9 * float(lengths.max())
