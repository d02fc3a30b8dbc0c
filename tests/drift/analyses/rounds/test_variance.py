"""Drift variances and gains from Gram matrices, against updates and against what FedEve records."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from drift.analyses.rounds.variance import change_variance, client_variance, drift_variances, kalman_gains
from drift.methods.fedavg import FedAvg
from drift.methods.fedeve import FedEve
from drift.methods.ima import IMA
from drift.store.round_record import gram
from tests.drift import hand

SIZES = [2, 7, 4]
SHARES = torch.tensor(SIZES).double() / 13
D = 3


def run_of(method, *, updates=None, sizes=SIZES, **options):
    updates = hand.random(5, len(sizes), D) if updates is None else updates
    setting = hand.setting(method, number=6, **options)
    played = hand.play(method, setting, hand.random(D, seed=9), updates, sizes=sizes)
    return hand.HandRun(played.records, setting.experiment, d=D)


def test_variances_equal_their_definition():
    start, momentum, deltas = hand.random(D, seed=1), hand.random(D, seed=2), hand.random(3, D)
    matrix, mean = gram(start, momentum, start, deltas), SHARES @ deltas
    assert change_variance(matrix, SHARES, D) == pytest.approx(float((momentum - mean).square().sum()) / (3 * D))
    assert change_variance(matrix, SHARES, D, momentum=False) == pytest.approx(float(mean.square().sum()) / (3 * D))
    assert client_variance(matrix, SHARES, D) == pytest.approx(float((deltas - mean).square().sum()) / (9 * D))
    around = float((deltas - deltas.mean(0)).square().sum()) / (9 * D)
    assert client_variance(matrix, SHARES, D, uniform=True) == pytest.approx(around)


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({}, {}),
        ({"q_mode": "update_norm"}, {"momentum": "zero"}),
        ({"r_center": "uniform"}, {"center": "uniform"}),
        ({"sigma0": 0.3}, {"sigma0": 0.3}),
        ({"fusion": "lookahead"}, {}),
        ({"predict": False}, {}),
    ],
)
def test_a_fedeve_run_gives_what_it_recorded(options, arguments):
    run = run_of(FedEve(**options))
    found = drift_variances(run, **arguments)
    recorded = {"gain": "gain", "sigma": "sigma", "change_variance": "q_variance", "client_variance": "r_variance"}
    for name, extra in recorded.items():
        np.testing.assert_allclose(found[name], [float(made.extras[extra]) for made in run.records], rtol=1e-9)


def test_clients_without_samples_do_not_count():
    run = run_of(FedEve(), sizes=[2, 7, 0], updates=hand.random(4, 3, D) * hand.vector(1, 1, 0)[:, None])
    found = drift_variances(run)
    np.testing.assert_allclose(found.gain, [float(made.extras["gain"]) for made in run.records], rtol=1e-9)
    assert set(found.cohort.values) == {2}


def test_fedavg_is_compared_with_its_previous_mean_update():
    updates = hand.random(5, 3, D)
    found = drift_variances(run_of(FedAvg(), updates=updates))
    means = torch.stack([SHARES @ deltas for deltas in updates])
    expected = (means[1:] - means[:-1]).square().sum(1) / (3 * D)
    np.testing.assert_allclose(found.change_variance[1:], expected.numpy())
    assert float(found.change_variance[0]) == pytest.approx(float(means[0].square().sum()) / (3 * D))


@pytest.mark.parametrize("method", [FedEve(), IMA(base=FedEve(), window=2, start=3)])
def test_previous_update_is_taken_from_kept_clients_where_a_momentum_was_recorded(method):
    updates = hand.random(5, 3, D)
    run = run_of(method, updates=updates)
    means = torch.stack([SHARES @ deltas for deltas in updates])
    expected = (means[1:] - means[:-1]).square().sum(1) / (3 * D)
    np.testing.assert_allclose(drift_variances(run, momentum="previous").change_variance[1:], expected.numpy())


def test_rounds_without_kept_clients_are_missing_and_the_variance_is_carried_over():
    run = run_of(FedEve())
    bare = hand.Round(**{**vars(run.records[2]), "clients": None})
    thin = hand.HandRun([*run.records[:2], bare, *run.records[3:]], run.experiment, d=D)
    found = drift_variances(thin, momentum="previous")
    assert np.isnan(found.change_variance).values.tolist() == [False, False, True, True, False]
    assert np.isnan(found.gain).values.tolist() == [False, False, True, True, False]
    assert not np.isnan(found.client_variance).any()
    assert drift_variances(run, momentum="recorded").equals(drift_variances(thin, momentum="recorded"))


def test_shares_sum_to_one():
    found = drift_variances(run_of(FedAvg()))
    np.testing.assert_allclose(found.change_share + found.client_share, 1)


def test_gains_by_hand():
    gain, sigma = kalman_gains(range(3), np.array([2.0, np.nan, 1.0]), np.array([0.5, 1.0, 1.4]))
    np.testing.assert_allclose(gain, [0.8, np.nan, 0.5])
    np.testing.assert_allclose(sigma, [0.4, np.nan, 0.7])


def test_identical_updates_have_no_client_drift():
    found = drift_variances(run_of(FedAvg(), updates=hand.random(5, 1, D).expand(5, 3, D)))
    assert float(found.client_variance.max()) < 1e-15
    np.testing.assert_allclose(found.gain, 1)


def test_uniform_weighting_of_the_experiment_is_followed():
    updates = hand.random(2, 3, D)
    found = drift_variances(run_of(FedAvg(), updates=updates, clients={"weighting": "uniform"}))
    expected = float(updates[0].mean(0).square().sum()) / (3 * D)
    assert float(found.change_variance[0]) == pytest.approx(expected)


def test_every_variable_is_labelled():
    found = drift_variances(run_of(FedAvg()))
    assert all({"long_name", "units"} <= set(found[name].attrs) for name in found.data_vars)
    assert found.attrs["analysis"] == "drift_variances"
