"""Averages of a cohort's models: all of them are the recorded global model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import drift
from drift.analyses.landscapes.averages import error_averaged, similarity_rounds
from drift.record.recorder import Recorder
from landscape import make_task
from tests import tiny
from tests.drift import hand

MODELS = {"run": 'task.model="linear"', "statistical": 'task={dataset="digits",model="resnet8",train_samples=80}'}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), MODELS["run"])


@pytest.fixture(scope="module")
def statistical(tmp_path_factory):
    """A run whose model has batch statistics."""
    return tiny.trained(tmp_path_factory.mktemp("runs"), MODELS["statistical"], "rounds=2")


@pytest.mark.parametrize("which", MODELS)
def test_averaged_error_of_all_models_is_that_of_fedavg(which, request):
    run = request.getfixturevalue(which)
    ds = run.cached(error_averaged, rounds=[1], subsets=3, statistics="averaged")
    whole = ds.loss.sel(round=1, models=len(run.round(1).ids)).dropna("draw")
    np.testing.assert_allclose(whole[0], run.round(1).metrics["loss"], rtol=1e-5)


def test_means_have_statistics_of_training_samples_by_default(run, statistical):
    there = statistical.cached(error_averaged, rounds=[0, 1], subsets=3)
    averaged = statistical.cached(error_averaged, rounds=[0, 1], subsets=3, statistics="averaged")
    assert (there.attrs["statistics"], there.attrs["calibration"]) == ("recomputed", 80)
    assert averaged.attrs["statistics"] == "averaged"
    np.testing.assert_array_equal(there.loss.sel(models=1), averaged.loss.sel(models=1))
    apart = np.abs(there.loss - averaged.loss).sel(models=[2, 3])
    assert float(apart.min()) > 1e-4
    assert "statistics" not in run.cached(error_averaged, subsets=3).attrs


def test_clients_without_samples_are_left_out_of_averages(tmp_path):
    run = tiny.trained(
        tmp_path,
        "rounds=1",
        "clients.number=30",
        "clients.per_round=30",
        'clients.partition={name="dirichlet",variant="plain",concentration=0.05}',
    )
    some = int((run.round(0).sizes > 0).sum())
    assert some < 30
    assert int(run.cached(error_averaged, subsets=1).models.max()) == some


def test_similarity_is_one_for_a_client_with_itself_and_below_for_others(run):
    ds = run.cached(similarity_rounds, rounds=[0, 2])
    assert ds.cka.dims == ("round",)
    assert bool(((ds.cka > 0) & (ds.cka < 1)).all())


def test_the_rbf_kernel_compares_a_draw_of_the_inputs(tmp_path):
    run = tiny.trained(tmp_path, "rounds=1")
    whole = similarity_rounds(run, kernel="rbf")
    part = similarity_rounds(run, kernel="rbf", samples=4)
    assert part.attrs["samples"] == 4
    assert whole.attrs["samples"] == len(run.task.split("test"))
    assert 0 < float(part.cka[0]) <= 1
    assert float(part.cka[0]) != float(whole.cka[0])


def test_a_model_with_infinite_outputs_leaves_the_other_rounds_their_similarity(tmp_path):
    model = nn.Linear(4, 3)
    task = make_task(model, nn.CrossEntropyLoss(), (1e10 * hand.random(9, 4).float(), torch.arange(9) % 3))

    def state(scale, seed):
        return {name: scale * hand.random(*part.shape, seed=seed).float() for name, part in model.state_dict().items()}

    recorder = Recorder(tmp_path / "run", model, method="FedAvg", seed=0, data="d", partition="p", settings={})
    for index in range(2):
        models = {7: (state(1, 1), 2), 8: (state(1e30 if index else 1, 2), 3), 9: (state(1, 3), 4)}
        recorder.round(start=state(1, 4), clients=models, end=state(1, 1))
    ds = similarity_rounds(drift.open(tmp_path / "run", task=task))
    assert np.isfinite(ds.cka.sel(round=0)) and np.isnan(ds.cka.sel(round=1))
    assert ds.attrs["not_finite"] == "clients 8 of round 1"
