"""The update change: its split is exact, and its expectation is that of docs/update-change.md, over all cohorts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import tiny

import drift
from drift.analyses.counterfactual.all_clients import find_clients_to_train
from drift.analyses.counterfactual.update_change import update_change_effort


@pytest.mark.parametrize("share", [1.0, 0.2, 0.5, 0.0])
@pytest.mark.parametrize(("number", "cohort"), [(5, 2), (6, 1), (4, 4)])
def test_its_expectation_over_all_cohorts_is_the_closed_form_of_affine_updates(share, number, cohort):
    """D_k(w) = A (c_k - w), A = I - (I - h H)^tau; every cohort of both rounds is taken in turn."""
    draw = np.random.default_rng(number)
    d, tau, rate = 3, 4, 0.2
    root = draw.normal(size=(d, d))
    matrix = np.eye(d) - np.linalg.matrix_power(np.eye(d) - rate * root @ root.T / np.linalg.norm(root, 2) ** 2, tau)
    optima, start, other = draw.normal(size=(number, d)), draw.normal(size=d), draw.normal(size=d)

    def update(w, clients):
        return np.mean([matrix @ (optima[k] - w) for k in clients], axis=0)

    everyone = range(number)
    full = update(start, everyone)
    changes, split = [], {name: [] for name in ("now", "before", "moved", "carried", "chance")}
    for first in combinations(everyone, cohort):
        before = update(start, first)
        start_now = start + share * before + other
        full_now = update(start_now, everyone)
        for second in combinations(everyone, cohort):
            mean = update(start_now, second)
            changes.append(np.sum((mean - before) ** 2))
            s, s_before, moved = mean - full_now, before - full, full_now - full
            split["now"].append(s @ s)
            split["before"].append(s_before @ s_before)
            split["moved"].append(moved @ moved)
            split["carried"].append(-2 * s_before @ moved)
            split["chance"].append(2 * s @ (moved - s_before))
    mean = {name: np.mean(values) for name, values in split.items()}
    covariance = np.cov(optima.T) * (1 / cohort - 1 / number)  # of the mean over a cohort
    sampling = np.trace(matrix @ covariance @ matrix.T)
    carried = 2 * share * np.trace(matrix @ matrix @ covariance @ matrix.T)
    fixed = matrix @ (share * full + other)
    moved = fixed @ fixed + share**2 * np.trace(matrix @ matrix @ covariance @ matrix.T @ matrix.T)
    np.testing.assert_allclose(mean["now"], sampling, atol=1e-14)
    np.testing.assert_allclose(mean["before"], sampling, atol=1e-14)
    np.testing.assert_allclose(mean["carried"], carried, atol=1e-14)
    np.testing.assert_allclose(mean["moved"], moved, rtol=1e-12)
    np.testing.assert_allclose(mean["chance"], 0, atol=1e-13)
    np.testing.assert_allclose(np.mean(changes), 2 * sampling + carried + moved, rtol=1e-12)
    assert 0 <= carried <= 2 * share * sampling + 1e-14, "averaging lowers it, and leaves the sampling drift"


@pytest.mark.parametrize("number", [7, 14])
def test_unequal_weights_add_a_term_of_the_order_of_one_over_the_cohort(number):
    """Over all cohorts: S is a ratio of two means, so its expectation is minus its covariance with the lower one."""
    draw = np.random.default_rng(number)
    sizes, updates = draw.pareto(2, number) + 0.2, draw.normal(size=(number, 2))
    sizes, updates = sizes / sizes.mean(), updates + sizes[:, None]
    full, scaled = sizes @ updates / number, []
    for cohort in range(1, number + 1):
        members = [list(one) for one in combinations(range(number), cohort)]
        below = np.array([sizes[one].mean() for one in members])
        drift = np.array([sizes[one] @ updates[one] / sizes[one].sum() - full for one in members])
        bias = drift.mean(0)
        np.testing.assert_allclose(bias, -((below - 1) @ (drift - bias)) / len(members), atol=1e-14)
        assert (abs(bias) <= below.std() * drift.std(0) + 1e-14).all()
        before, moved = draw.normal(size=(2, 2))  # S_(t-1) and F_t - F_(t-1), fixed before the cohort is drawn
        change = np.square(drift + moved - before).sum(1).mean()
        terms = np.square(drift).sum(1).mean() + before @ before + moved @ moved - 2 * before @ moved
        assert change == pytest.approx(terms + 2 * bias @ (moved - before))
        scaled.append(np.linalg.norm(bias) / (1 / cohort - 1 / number) if cohort < number else 0.0)
    assert min(scaled[:-1]) > 0.2 and scaled[-2] < 2 * scaled[number // 2] < 4 * scaled[-2]


def eigenvalue(step, steps):
    """Of A = I - (I - h H)^tau in a direction with h lambda = step."""
    return 1 - (1 - step) ** steps


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_steps_below_the_inverse_curvature_and_only_these_keep_the_eigenvalues_of_odd_numbers_below_one(steps):
    below, above = (eigenvalue(np.linspace(*ends, 50), steps) for ends in ((0.01, 0.99), (1.01, 1.99)))
    assert ((below > 0) & (below < 1)).all()
    assert (((above > 1) & (above < 2)) if steps % 2 else ((above > 0) & (above < 1))).all()
    assert (abs(1 - above) < 1).all(), "local training and rounds are stable in both cases"


@pytest.mark.parametrize(
    ("step", "steps", "parts"), [(0.5, 1, 3.25), (0.9, 3, 4.997), (1.5, 3, 5.515625), (1.5, 1, 7.25), (1.9, 1, 9.41)]
)
def test_one_direction_at_rest_changes_its_mean_update_by_the_closed_form(step, steps, parts):
    """w' = (1 - a) w + S around the mean of the optima, D = S - a w; the variance of S is 1, a is the eigenvalue."""
    a = eigenvalue(step, steps)
    rest = 1 / (1 - (1 - a) ** 2)
    assert 2 + 2 * a + a**2 == pytest.approx(parts, rel=1e-3), "two samplings, term (2), the sampling part of (3)"
    own = a**2 * a**2 * rest
    total = 2 + 2 * a + a**2 + own
    assert total == pytest.approx((4 + 2 * a) / (2 - a))
    draw = np.random.default_rng(steps).normal(size=200_000)
    w = np.zeros(len(draw))
    for place in range(1, len(draw)):
        w[place] = (1 - a) * w[place - 1] + draw[place - 1]
    assert np.mean(np.diff(draw - a * w)[1000:] ** 2) == pytest.approx(total, rel=0.03)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "rounds=5", "keep.globals=all", "keep.clients=none")


def test_the_parts_sum_to_the_change_which_equation_13_squares(run):
    ds = drift.update_change(run, rounds=[1, 2, 4])
    parts = ds.sampling + ds.sampling_before + ds.full_change + ds.carried + ds.chance
    np.testing.assert_allclose(parts, ds.change, rtol=1e-9)
    recorded = drift.drift_variances(run)
    expected = (recorded.change_variance * recorded.cohort * recorded.d).sel(round=[1, 2, 4])
    np.testing.assert_allclose(ds.change, expected, rtol=1e-5)
    exact = drift.counterfactual(run, rounds=[1, 2, 4])
    np.testing.assert_allclose(ds.sampling, exact.norm.sel(part="sampling") ** 2, rtol=1e-5)
    starts = [run.round(index).start.double() for index in range(5)]
    moved = [float((starts[index] - starts[index - 1]).square().sum()) for index in (1, 2, 4)]
    np.testing.assert_allclose(ds.start_change, moved, rtol=1e-12)


def test_the_default_takes_pairs_and_a_round_without_the_one_before_is_refused(run, tmp_path):
    assert drift.update_change(run)["round"].values.tolist() == [1, 2, 3, 4]
    with pytest.raises(LookupError, match="did not keep the round before round 0"):
        drift.update_change(run, rounds=[0, 2])
    few = tiny.trained(tmp_path, "rounds=5", "keep.globals=every 3", "keep.clients=none")
    with pytest.raises(LookupError, match=r"keep\.globals=all"):
        drift.update_change(few, rounds=[few.kept("globals")[0]])


def test_its_effort_counts_each_training_once(run):
    stated = update_change_effort(run, rounds=[1, 2, 4])
    cohorts = {index: len(find_clients_to_train(run, index).trained) for index in range(5)}
    assert stated.trainings == sum(cohorts.values())  # rounds 0 to 4: round 1 is in two pairs, and trained once
    assert update_change_effort(run, rounds=[1]).trainings == cohorts[0] + cohorts[1]


@pytest.mark.parametrize("cohort", tiny.EVERYONE)
def test_full_participation_has_exactly_no_sampling_drift(tmp_path, cohort):
    ds = drift.update_change(tiny.trained(tmp_path, *cohort, "keep.globals=all"))
    assert not any(ds[name].any() for name in ("sampling", "sampling_before", "carried", "chance"))
    np.testing.assert_array_equal(ds.change, ds.full_change)
    assert (ds.change > 0).all()
