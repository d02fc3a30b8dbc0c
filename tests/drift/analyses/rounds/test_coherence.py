"""Coherence of client updates against cosines computed one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from drift.analyses.rounds.coherence import coherence, cohort_coherence, cosines, mean_cosine, moving_average, pairwise
from drift.store.round_record import gram
from tests.drift import hand


def run_of(*updates, sizes=None, ids=None, number=6, weights=None):
    """Records of rounds with the given updates (m, d)."""
    records = []
    for index, deltas in enumerate(updates):
        start = hand.random(deltas.shape[1], seed=index + 50)
        group = hand.cohort(start + deltas, start=start, sizes=sizes, ids=ids, index=index)
        records.append(hand.record(group, group.weighted_mean, weights=weights))
    return hand.HandRun(records, hand.experiment(number=number, clients={"per_round": 2}), d=updates[0].shape[1])


def matrix(deltas):
    nothing = torch.zeros(deltas.shape[1], dtype=torch.float64)
    return gram(nothing, nothing, nothing, deltas)


def test_cosines_equal_those_of_torch():
    deltas = hand.random(4, 7)
    expected = torch.nn.functional.cosine_similarity(deltas[:, None], deltas[None], dim=2)
    assert torch.allclose(cosines(matrix(deltas)), expected, atol=1e-13)


def test_a_resting_client_has_cosine_zero():
    found = cosines(matrix(torch.stack([hand.vector(1, 2), hand.vector(0, 0), hand.vector(-1, -2)])))
    assert found[1].tolist() == [0, 0, 0]
    assert float(found[0, 2]) == pytest.approx(-1)


def test_identical_updates_with_uniform_weights():
    run = run_of(hand.random(1, 5).expand(4, 5))
    found = coherence(run, smooth=1)
    assert float(found.coherence[0]) == pytest.approx(3 / 16)
    assert float(found.mean_cosine[0]) == pytest.approx(1)


def test_unequal_weights_equal_a_double_loop():
    deltas, sizes = hand.random(3, 5), [2, 7, 4]
    lambdas = np.array(sizes) / 13
    total = paired = 0.0
    for i in range(3):
        for j in range(3):
            if i != j:
                cosine = float(torch.nn.functional.cosine_similarity(deltas[i], deltas[j], dim=0))
                total += lambdas[i] * lambdas[j] * cosine
                paired += lambdas[i] * lambdas[j]
    found = coherence(run_of(deltas, sizes=sizes), smooth=1)
    assert float(found.coherence[0]) == pytest.approx(total / 3)
    assert float(found.mean_cosine[0]) == pytest.approx(total / paired)


def test_scaling_or_permuting_clients_changes_nothing():
    deltas, weights = hand.random(3, 5), hand.vector(0.2, 0.5, 0.3)
    order = torch.tensor([2, 0, 1])
    one = cohort_coherence(cosines(matrix(deltas)), weights)
    assert cohort_coherence(cosines(matrix(100 * deltas)), weights) == pytest.approx(one)
    assert cohort_coherence(cosines(matrix(deltas[order])), weights[order]) == pytest.approx(one)


def test_a_client_of_weight_0_does_not_count():
    cosine = torch.tensor([[1.0, 0.5, 0.3], [0.5, 1.0, -0.2], [0.3, -0.2, 1.0]], dtype=torch.float64)
    weights = torch.tensor([0.4, 0.6, 0.0], dtype=torch.float64)
    assert cohort_coherence(cosine, weights) == pytest.approx(2 * 0.4 * 0.6 * 0.5 / 2)
    assert np.isnan(cohort_coherence(cosine, torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)))


def test_shrunk_weights_count_relative_to_each_other():
    deltas, sizes = hand.random(3, 5), [2, 7, 4]
    shares = torch.tensor(sizes).double() / 13
    plain, shrunk = run_of(deltas, sizes=sizes), run_of(deltas, sizes=sizes, weights=0.9 * shares)
    assert float(coherence(shrunk).coherence[0]) == pytest.approx(float(coherence(plain).coherence[0]))
    other = run_of(deltas, sizes=sizes, weights=hand.vector(1, 0, 0))
    assert float(coherence(other, weighting="shares").coherence[0]) == pytest.approx(
        float(coherence(plain).coherence[0])
    )
    assert np.isnan(float(coherence(other).mean_cosine[0]))


def test_one_client_has_no_coherence():
    found = coherence(run_of(hand.random(1, 5)), smooth=1)
    assert np.isnan(found.coherence[0])
    assert np.isnan(found.critical_point)


def opposed(share):
    """Two updates whose cosine is `share`."""
    return torch.stack([hand.vector(1, 0), hand.vector(share, (1 - share**2) ** 0.5)])


CHANGED = (0.9,) * 10 + (-0.5,) * 10
"""Cosines of the rounds of a run whose coherence changes sign in round 10."""


def test_critical_point_is_the_change_from_positive_to_negative():
    found = coherence(run_of(*(opposed(share) for share in CHANGED)))
    assert float(found.critical_point) == 10
    assert float(found.critical_low) <= 10 <= float(found.critical_high)
    assert np.isnan(found.coherence_smooth[:2]).all()
    assert float(found.coherence_smooth[10]) == pytest.approx((0.9 + 0.9 - 0.5) / 3 / 4)


@pytest.mark.parametrize(
    "cosines",
    [(0.5,) * 20, (-0.5,) * 20, (0.5,) * 8 + (-0.9,) + (0.5,) * 11, CHANGED[::-1], CHANGED[8:], CHANGED[:4]],
    ids=["positive", "negative", "one dip", "from negative to positive", "no positive phase", "too few rounds"],
)
def test_without_a_change_there_is_no_critical_point(cosines):
    found = coherence(run_of(*(opposed(share) for share in cosines)))
    assert all(np.isnan(found[name]) for name in ("critical_point", "critical_low", "critical_high"))


def test_moving_average_leaves_out_missing_values():
    found = moving_average(np.arange(4), np.array([1.0, np.nan, 4.0, 7.0]), 2)
    np.testing.assert_array_equal(found, [np.nan, 1.0, 4.0, 5.5])


def test_group_means_are_means_over_their_pairs():
    deltas, sizes = hand.random(4, 5), [2, 7, 4, 3]
    run = run_of(deltas, sizes=sizes, ids=[5, 1, 3, 0])
    found = coherence(run, groups={"even": [0, 2, 4], "odd": [1, 3, 5]}).group_cosine
    assert list(found.pair.values) == ["even-even", "even-odd", "odd-odd"]
    cosine = torch.nn.functional.cosine_similarity(deltas[:, None], deltas[None], dim=2)
    weights = {(i, j): sizes[i] * sizes[j] for i, j in [(0, 1), (0, 2), (1, 2)]}
    expected = sum(weight * float(cosine[pair]) for pair, weight in weights.items()) / sum(weights.values())
    assert float(found.sel(round=0, pair="odd-odd")) == pytest.approx(expected)
    mixed = sum(sizes[3] * sizes[j] * float(cosine[3, j]) for j in range(3)) / (sizes[3] * sum(sizes[:3]))
    assert float(found.sel(round=0, pair="even-odd")) == pytest.approx(mixed)
    assert np.isnan(found.sel(round=0, pair="even-even"))


def test_normalised_mean_of_everything_is_the_mean_of_a_whole_group():
    deltas, weights = hand.random(3, 5), hand.vector(0.2, 0.5, 0.3)
    everyone = torch.ones(3, dtype=torch.bool)
    cosine = cosines(matrix(deltas))
    assert mean_cosine(cosine, weights, everyone, everyone) == pytest.approx(mean_cosine(cosine, weights))


def test_pairwise_is_labelled_with_client_ids():
    found = pairwise(run_of(hand.random(3, 5), hand.random(3, 5, seed=1), ids=[5, 1, 3]))
    assert found.cosine.dims == ("client", "client_other")
    assert list(found.client.values) == [5, 1, 3]
    assert found.attrs["round"] == 1
    assert float(found.cosine.sel(client=5, client_other=5)) == pytest.approx(1)


def test_senseless_smoothing_is_refused():
    with pytest.raises(ValueError, match="smooth is 0"):
        coherence(run_of(hand.random(2, 3)), smooth=0)
