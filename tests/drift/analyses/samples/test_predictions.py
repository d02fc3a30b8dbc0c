"""Predictions of the models of a tiny run against its recorded errors."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch

from drift.analyses.landscapes.named_models import named_models, sum_name
from drift.analyses.samples.predictions import confusion, sample_predictions


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"))


def test_global_models_have_their_recorded_errors_and_losses(run):
    ds = sample_predictions(run, round=2, models=["start", "end", "round 0"])
    wrong = (ds.predicted != ds.target).mean("sample")
    metrics = run.metrics()
    np.testing.assert_allclose(wrong, metrics.error.sel(round=[1, 2, 0]), atol=1e-12)
    np.testing.assert_allclose(ds.loss.mean("sample"), metrics.loss.sel(round=[1, 2, 0]), rtol=1e-5)


def test_a_sum_of_models_has_a_name(run):
    client = f"client {int(run.round(1).ids[2])}"
    name = sum_name([client, "start", "end"], [0.25, -0.5, 0.0])
    assert name == f"0.25 * {client} + -0.5 * start"
    named = named_models(run, 1, [client, "start", name])
    torch.testing.assert_close(named.models[2], 0.25 * named.models[0] - 0.5 * named.models[1])
    assert sum_name(["end", "start"], [1.0, 0.0]) == "end"


def test_samples_of_a_client_are_those_that_it_trains_on(run):
    client = int(run.round(0).ids[0])
    ds = sample_predictions(run, round=0, split=f"client {client}")
    np.testing.assert_array_equal(ds.sample, run.parts_in(0)[client])
    np.testing.assert_array_equal(ds.target, run.labels[run.parts_in(0)[client]])


def test_confusions_count_every_sample_once(run):
    ds = confusion(run, round=-1, models=["end", "start"])
    targets = run.task.samples["test"].targets.numpy()
    np.testing.assert_array_equal(ds["count"].sum("predicted_class")[0], np.bincount(targets))
    np.testing.assert_allclose(ds.error.sel(model="end"), run.metrics().error[-1], atol=1e-12)
    shares = np.bincount(targets) / len(targets)
    np.testing.assert_allclose((ds.class_error * shares).sum("class"), ds.error, atol=1e-12)


@pytest.mark.parametrize("name", ["client 9", "clients 1", "", "last", "a * end", "0.5 * last", "0.5 * end +"])
def test_unknown_models_are_refused(run, name):
    with pytest.raises(ValueError, match=r"no client 9|no model named"):
        named_models(run, 0, [name])


@pytest.mark.parametrize("split", ["client 4", "elsewhere"])
def test_unknown_samples_are_refused(run, split):
    with pytest.raises(ValueError, match=split):
        sample_predictions(run, split=split)
