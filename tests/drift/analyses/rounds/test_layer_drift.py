"""Drift by layer against the whole model."""

import numpy as np
import pytest
import torch

from drift import coherence, drift_variances
from drift.analyses.rounds.norms_and_weights import distances
from drift.analyses.rounds.variance import layer_drift
from drift.config.load import read, validated
from drift.simulation.simulate import simulate

TINY = {
    "rounds": 4,
    "seed": 3,
    "task": {"dataset": "digits", "model": "cnn_digits", "train_samples": 120, "test_samples": 60},
    "clients": {"number": 5, "per_round": 3, "partition": "dirichlet", "concentration": 0.5, "variant": "plain"},
    "local": {"lr": 0.05, "epochs": 1, "batch": 16},
}


def trained(folder, *changes):
    return simulate(read(validated(TINY), *changes), runs=folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs"))


def test_sums_over_layers_are_those_of_the_whole_model(run):
    found, whole = layer_drift(run), drift_variances(run)
    d = float(found["size"].sum())
    assert d == whole.attrs["d"] == len(run.round(0).end)
    for name in ("change_variance", "client_variance"):
        np.testing.assert_allclose((found[name] * found["size"]).sum("layer") / d, whole[name], rtol=1e-5)
    for index in run.rounds():
        record = run.round(index)
        weights = run.experiment.cohort_weights(record.sizes)
        squares = {
            "update_norm": (weights @ record.deltas.double()).square().sum(),
            "step_norm": (record.end - record.start).double().square().sum(),
            "client_norm": weights @ record.deltas.double().square().sum(1),
        }
        for name, square in squares.items():
            assert float((found[name].sel(round=index) ** 2).sum()) == pytest.approx(float(square), rel=1e-5)
        drift = float(found.client_variance.sel(round=index) @ found["size"]) * len(record.ids) ** 2
        assert drift == pytest.approx(float(distances(record.gram, weights).square().sum()), rel=1e-5)


def test_a_layer_is_the_slice_of_the_updates(run):
    found, record = layer_drift(run, rounds=[2]), run.round(2)
    assert found.layer.values.tolist() == [name for name, _ in run.task.layout.parameters]
    name, place = list(run.task.layout.slices().items())[2]
    deltas = record.deltas[:, place].double()
    unit = deltas / deltas.norm(dim=1, keepdim=True)
    cosine = unit @ unit.T - torch.eye(3, dtype=torch.float64)
    weights = record.weights.double() / record.weights.sum()
    expected = float(weights @ cosine @ weights)
    chosen = found.sel(round=2, layer=name)
    assert float(chosen.coherence) == pytest.approx(expected / 3, rel=1e-5)
    assert float(chosen.mean_cosine) == pytest.approx(expected / float(1 - weights @ weights), rel=1e-5)


def test_a_tensor_that_holds_nearly_all_gives_the_whole_model(tmp_path):
    run = trained(tmp_path, "task.model=linear")
    found, whole, pulled = layer_drift(run), drift_variances(run), coherence(run)
    weight = found.isel(layer=int(np.argmax(found["size"].values)))
    assert float(weight["size"]) > 0.98 * whole.attrs["d"]
    np.testing.assert_allclose(weight.gain, whole.gain, atol=0.03)
    np.testing.assert_allclose(weight.mean_cosine, pulled.mean_cosine, atol=0.05)


def test_rounds_without_the_one_before_have_no_update_change(tmp_path):
    thin = trained(tmp_path, 'keep.clients="at 0 2 3"')
    found = layer_drift(thin)
    assert found["round"].values.tolist() == [0, 2, 3]
    assert np.isnan(found.change_variance).all("layer").values.tolist() == [False, True, False]
    assert np.isnan(found.gain).all("layer").values.tolist() == [False, True, False]
    assert not np.isnan(found.client_variance).any()
    last = found.sel(round=3)
    alone = last.change_variance / (last.change_variance + last.client_variance)
    np.testing.assert_allclose(last.gain, alone)
    np.testing.assert_array_equal(layer_drift(thin, rounds=[3, 0]).sel(round=3).gain, last.gain)
    zero = layer_drift(thin, momentum="zero")
    assert not np.isnan(zero.gain).any()
    np.testing.assert_allclose(zero.change_variance, found.update_norm**2 / (3 * found["size"]), rtol=1e-9)


def test_gains_are_between_zero_and_one_and_everything_is_labelled(run):
    found = layer_drift(run)
    assert bool(((found.gain > 0) & (found.gain < 1)).all())
    assert all({"long_name", "units"} <= set(found[name].attrs) for name in found.variables)


def test_a_run_that_kept_no_clients_says_what_to_train(tmp_path):
    with pytest.raises(LookupError, match=r"keep\.clients=all"):
        layer_drift(trained(tmp_path, "keep.clients=none"))
    with pytest.raises(LookupError, match=r"keep\.clients=all"):
        layer_drift(trained(tmp_path, "keep.clients=none"), rounds=[1])
