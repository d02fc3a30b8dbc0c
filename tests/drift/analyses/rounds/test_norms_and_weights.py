"""Norms, balance and learned weights from records, against the vectors themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from drift.analyses.rounds.norms_and_weights import (
    aggregation_weights,
    distances,
    locality,
    regularisation_ratio,
    regularisation_ratio_mean,
    update_norms,
)
from tests.drift import hand

D = 4


def run_of(*, weights=None, seed=0, sizes=(2, 7, 4), ends=None):
    """Two rounds, clients 5, 1, 3 and then 0, 1, 2 of 6; the end is the weighted sum of the clients."""
    records = []
    for index, ids in enumerate(([5, 1, 3], [0, 1, 2])):
        start, deltas = hand.random(D, seed=seed + index + 50), hand.random(3, D, seed=seed + index)
        group = hand.cohort(start + deltas, start=start, sizes=sizes, ids=ids, index=index)
        used = group.weights if weights is None else weights
        end = used.double() @ group.clients if ends is None else ends[index]
        records.append(hand.record(group, end, previous=hand.random(D, seed=90), weights=used))
    return hand.HandRun(records, hand.experiment(number=6), d=D)


def test_norms_equal_those_of_the_vectors():
    run = run_of()
    found = update_norms(run)
    made = run.records[1]
    assert float(found.start_norm[1]) == pytest.approx(float(made.start.norm()))
    assert float(found.end_norm[1]) == pytest.approx(float(made.end.norm()))
    assert float(found.step_norm[1]) == pytest.approx(float((made.end - made.start).norm()))
    assert float(found.mean_update_norm[1]) == pytest.approx(float((made.fma - made.start).norm()))
    assert float(found.previous_norm[1]) == pytest.approx(float(hand.random(D, seed=90).norm()))
    norms = made.deltas.norm(dim=1)
    assert float(found.update_norm.sel(round=1, client=2)) == pytest.approx(float(norms[2]))
    assert float(found.update_norm_max[1]) == pytest.approx(float(norms.max()))
    assert float(found.update_norm_min[1]) == pytest.approx(float(norms.min()))
    assert float(found.update_norm_mean[1]) == pytest.approx(float(norms.mean()))


def test_clients_outside_the_cohort_are_missing():
    found = update_norms(run_of()).update_norm
    assert found.dims == ("round", "client")
    assert found.sizes["client"] == 6
    present = (~np.isnan(found)).values
    assert np.flatnonzero(present[0]).tolist() == [1, 3, 5]
    assert np.flatnonzero(present[1]).tolist() == [0, 1, 2]


def test_balance_is_the_ratio_of_the_two_terms():
    shares = torch.tensor([2, 7, 4]).double() / 13
    run = run_of(weights=0.9 * shares)
    found = regularisation_ratio(run)
    for row, made in enumerate(run.records):
        optimisation = 0.9 * (made.fma - made.start).norm()
        regularisation = 0.1 * made.start.norm()
        assert float(found.ratio[row]) == pytest.approx(float(optimisation / regularisation))
        assert float(found.optimisation[row]) == pytest.approx(float(optimisation))
        assert float(found.gamma[row]) == pytest.approx(0.9)


def test_balance_takes_a_server_step_size_into_account():
    start = hand.random(D, seed=50)
    gamma, rate = 0.8, 0.5
    shares = torch.tensor([2, 7, 4]).double() / 13
    mean = shares @ hand.random(3, D)
    run = run_of(weights=gamma * shares, ends=[gamma * (start + rate * mean), hand.random(D)])
    expected = gamma * rate * float(mean.norm()) / ((1 - gamma) * float(start.norm()))
    assert float(regularisation_ratio(run).ratio[0]) == pytest.approx(expected)


def test_balance_without_shrinking_is_missing_also_for_rounded_weights():
    shares = torch.tensor([2, 7, 4]).float() / 13
    found = regularisation_ratio(run_of(weights=shares))
    assert np.isnan(found.ratio).all()
    assert (found.regularisation == 0).all()
    assert not np.isnan(found.optimisation).any()


def shrinking(*gammas, rounds):
    """Rounds 0, 1, .. of a run of `rounds` planned ones, with these sums of weights."""
    records = []
    for index, gamma in enumerate(gammas):
        start = hand.random(D, seed=index + 50)
        group = hand.cohort(start + hand.random(3, D, seed=index), start=start, sizes=(2, 7, 4), index=index)
        used = gamma * group.weights
        records.append(hand.record(group, used @ group.clients, weights=used))
    return hand.HandRun(records, hand.experiment(rounds=rounds), d=D)


def test_mean_balance_is_that_of_the_middle_rounds():
    run = shrinking(*(0.9 + 0.005 * index for index in range(11)), rounds=11)
    found, every = regularisation_ratio_mean(run), regularisation_ratio(run)
    assert (found.attrs["first"], found.attrs["last"]) == (4, 7)
    assert float(found.ratio) == pytest.approx(float(every.ratio[4:8].mean()))
    assert float(found.gamma) == pytest.approx(0.9 + 0.005 * 5.5)
    assert float(found.ratio_std) == pytest.approx(float(every.ratio[4:8].std(ddof=1)))


@pytest.mark.parametrize(("rounds", "first", "last"), [(200, 90, 110), (50, 22, 28), (3, 1, 2), (1, 0, 1)])
def test_the_window_of_the_paper_scales_with_the_run(rounds, first, last):
    found = regularisation_ratio_mean(shrinking(0.9, rounds=rounds))
    assert (found.attrs["first"], found.attrs["last"]) == (first, last)
    assert bool(np.isfinite(found.ratio)) == (first == 0)


def test_mean_balance_leaves_out_rounds_that_do_not_shrink():
    run = shrinking(0.9, 1.0, 0.8, rounds=3)
    found, every = regularisation_ratio_mean(run, window=(0, 1)), regularisation_ratio(run)
    assert float(found.ratio) == pytest.approx((float(every.ratio[0]) + float(every.ratio[2])) / 2)
    with pytest.raises(ValueError, match="window is"):
        regularisation_ratio_mean(run, window=(0.6, 0.5))


def test_learned_weights_are_split_into_shrinking_and_shares():
    found = aggregation_weights(run_of(weights=hand.vector(0.1, 0.2, 0.5)))
    np.testing.assert_allclose(found.gamma, 0.8)
    assert float(found["weights"].sel(round=0, client=3)) == pytest.approx(0.5 / 0.8)
    assert np.isnan(found["weights"].sel(round=0, client=0))
    np.testing.assert_allclose(found["weights"].sum("client"), 1)


def test_locality_is_the_largest_distance_to_the_mean():
    run = run_of(weights=hand.vector(0.1, 0.2, 0.5))
    found = locality(run)
    for row, made in enumerate(run.records):
        expected = (made.clients - made.fma).norm(dim=1)
        assert float(found.locality[row]) == pytest.approx(float(expected.max()))
        assert float(found.mean_distance[row]) == pytest.approx(float(made.shares @ expected))
        np.testing.assert_allclose(found.distance[row].values[made.ids.numpy()], expected.numpy())


def test_identical_clients_have_no_distance():
    group = hand.cohort(hand.random(1, D).expand(3, D), start=hand.random(D, seed=1), sizes=[2, 7, 4])
    assert float(distances(hand.record(group, group.weighted_mean).gram, group.weights).max()) < 1e-7


def test_every_variable_and_coordinate_is_labelled():
    run = run_of()
    for found in (
        update_norms(run),
        regularisation_ratio(run),
        regularisation_ratio_mean(run),
        aggregation_weights(run),
        locality(run),
    ):
        assert all({"long_name", "units"} <= set(found[name].attrs) for name in [*found.data_vars, *found.coords])
        assert {"analysis", "source"} <= set(found.attrs)
