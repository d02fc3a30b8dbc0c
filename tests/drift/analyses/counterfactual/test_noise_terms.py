"""Signal, data, drift and noise: expectations of the estimators over all outcomes are the quantities themselves."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from drift.analyses.counterfactual.noise_terms import CAUSES, MEAN, NAMES, PAIRS, SQUARE, Replays, crossing, equal_steps

CLOSED = [*range(4), *range(8, 13)]
"""Entries that are no ratio of two estimates: mean squares, parts of the mean update, scale."""


def replays(frozen, updates, shares, number, cohort=2):
    m, R, _ = updates.shape
    mixed, own = np.einsum("krd,ld->krl", updates, frozen), np.einsum("krd,lsd->krls", updates, updates)
    return Replays(frozen @ frozen.T, mixed, own, np.ones((m, R), dtype=bool), shares, number, cohort)


def truth(frozen, means, noise, q):
    """Written out from the vectors; noise (K,) is the mean square of each client's."""
    K = len(q)
    scale = sum(q * (means * frozen).sum(1)) / sum(q * (frozen**2).sum(1))
    signal, mean = scale * q @ frozen, q @ means
    rows = {
        "signal": signal @ signal,
        "data": q @ ((scale * frozen - signal) ** 2).sum(1),
        "drift": q @ ((means - scale * frozen) ** 2).sum(1),
        "noise": q @ noise,
        "mean signal": signal @ signal,
        "mean drift": (mean - signal) @ (mean - signal),
        "mean sampling": K**2 / (K - 1) * sum(q**2 * ((means - mean) ** 2).sum(1)),
        "mean noise": K * q**2 @ noise,
        "scale": scale,
    }
    return np.array([rows[NAMES[entry]] for entry in CLOSED])


@pytest.mark.parametrize("R", [2, 3])
def test_no_estimate_of_all_clients_is_biased_with_two_or_three_replays(R):
    """All outcomes of noise with two values per client in turn; weights are unequal, and one client has no noise."""
    draw = np.random.default_rng(0)
    frozen = draw.normal(size=(3, 4))
    means = 0.5 * frozen + 0.1 * draw.normal(size=(3, 4))
    vectors, q = draw.normal(size=(3, 4)) * np.array([[1.0], [0.0], [3.0]]), np.array([0.5, 0.1, 0.4])
    found = []
    for signs in product([-1, 1], repeat=2 * R):
        noise = np.zeros((3, R, 4))
        noise[[0, 2]] = np.array(signs).reshape(2, R, 1) * vectors[[0, 2], None]
        found.append(replays(frozen, means[:, None] + noise, q, 3).estimate()[CLOSED])
    exact = truth(frozen, means, (vectors**2).sum(1), q)
    np.testing.assert_allclose(np.mean(found, axis=0), exact, rtol=1e-10)
    assert np.min(found, axis=0)[2] < 0, "drift is estimated without bias, so that some outcomes are negative"
    naive = np.mean([one[:4].sum() for one in found])
    assert exact[:4].sum() == pytest.approx(naive), "the parts sum to the mean square of the updates"


def test_no_estimate_of_a_random_cohort_is_biased_but_for_the_ratio_of_the_scale():
    draw = np.random.default_rng(1)
    frozen = draw.normal(size=(5, 6))
    means = 0.7 * frozen  # one scale in every cohort
    for q in (np.full(5, 0.2), np.array([0.4, 0.1, 0.2, 0.05, 0.25])):
        exact = truth(frozen, means, np.zeros(5), q)
        rows = []
        for cohort in map(list, combinations(range(5), 3)):
            rows.append(replays(frozen[cohort], np.repeat(means[cohort, None], 2, 1), q[cohort], 5).estimate()[CLOSED])
        found = dict(zip([NAMES[entry] for entry in CLOSED], np.mean(rows, axis=0) - exact, strict=True))
        unequal = ("mean sampling",) if len(set(q)) > 1 else ()  # exact to first order only
        assert max(abs(error) for name, error in found.items() if name not in unequal) < 1e-12, found


def test_intervals_cover_and_a_dominating_client_widens_them():
    draw = np.random.default_rng(2)
    K, m, d = 30, 8, 12
    frozen = 1 + draw.normal(size=(K, d))
    means = frozen * np.linspace(0.9, 0.4, d) + 0.1 * draw.normal(size=(K, d))
    size, q = draw.uniform(0.5, 1.5, K), np.full(K, 1 / K)
    exact, hits = truth(frozen, means, size**2 * d, q), []
    for _ in range(150):
        cohort = draw.choice(K, m, replace=False)
        noise = size[cohort, None, None] * draw.normal(size=(m, 3, d))
        one = replays(frozen[cohort], means[cohort, None] + noise, q[cohort], K).estimated()
        hits.append(np.abs(one.values[CLOSED] - exact) <= one.half[CLOSED])
    assert np.mean(hits, axis=0).min() > 0.86  # 0.95 but for chance and skewness
    noise = np.zeros((8, 3, d))
    noise[0] = draw.normal(size=(3, d))
    one = replays(frozen[:8], means[:8, None] + noise, np.full(8, 1 / 8), 8).estimated()
    spread = np.sqrt(one.covariances.sum(0)[3, 3])
    assert one.half[3] == pytest.approx(4.3027 * spread, rel=1e-3), "two degrees of freedom: three replays of one"


def test_crossings_are_those_of_the_formula_and_absent_outside_one_to_k():
    frozen = np.eye(4)[:, :3] + 1
    means = frozen + np.array([0.5, -0.5, 0.2])
    one = replays(frozen, np.repeat(means[:, None], 3, 1), np.full(4, 0.25), 4).estimated()
    _, drift, sampling, _ = one.values[MEAN]
    sizes = dict(zip(PAIRS, one.equal_cohorts(), strict=True))
    expected = 1 / (drift / sampling + 1 / 4)
    np.testing.assert_allclose(sizes["drift=sampling"], expected, rtol=1e-3)
    assert np.isnan(sizes["signal=drift"]).all()
    places = np.linspace(1, 3, 201)
    where, low, high = crossing(places, places - 2.003, np.full(201, 0.5))
    assert (where, low, high) == pytest.approx((2.003, 1.51, 2.5))
    assert np.isnan(crossing(places, places, np.full(201, 0.5))).all()
    undecided = crossing(places, places, np.full(201, 2.0))
    assert np.isnan(undecided[0])
    assert undecided[1:] == pytest.approx((1, 2))


def test_steps_at_which_parts_are_equal_lie_between_the_fractions():
    frozen = np.eye(4)[:, :3] + 1

    def after(steps):
        means = steps * frozen + 0.05 * steps**2 * np.array([1, -1, 0.3])
        return replays(frozen, np.repeat(means[:, None], 3, 1), np.full(4, 0.25), 4).estimated()

    steps = np.array([1.0, 2, 4, 8, 16])
    rows = dict(zip(PAIRS, equal_steps([after(step) for step in steps], steps), strict=True))
    difference = [after(step).differences(np.array([2.0]))[0][PAIRS.index("drift=sampling"), 0] for step in steps]
    turn = np.flatnonzero(np.diff(np.sign(difference)))[0]
    assert steps[turn] < rows["drift=sampling"][0] < steps[turn + 1]
    assert np.isnan(equal_steps([None, after(2.0)], np.array([1.0, 2.0]))).all()
    assert set(CAUSES) >= set("=".join(PAIRS).split("="))
    assert after(1.0).values[SQUARE][3] == pytest.approx(0, abs=1e-12)
