"""The loss of each client's own data on one plane."""

import numpy as np
import pytest
import torch

from drift.basins import client_planes
from drift.read import validated
from drift.run import Run
from drift.simulate import simulate
from landscape.affine import evaluate


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    tiny = {
        "rounds": 2,
        "seed": 3,
        "task": {"dataset": "digits", "model": "mlp", "model_options": {"hidden": [5]}, "train_samples": 150},
        "clients": {"number": 6, "per_round": 4, "partition": "dirichlet", "concentration": 0.5, "variant": "plain"},
        "local": {"lr": 0.1, "epochs": 1, "batch": 8},
    }
    return simulate(validated(tiny), runs=tmp_path_factory.mktemp("runs"))


def test_each_clients_loss_is_that_of_its_own_samples(run):
    ds = client_planes(run, points=4)
    record = run.round(-1) if -1 in run.kept("clients") else run.round(run.kept("clients")[-1])
    assert ds.client.values.tolist() == record.ids.tolist()[:3]
    models = record.kept("clients")[:3]
    for client in ds.client.values.tolist():
        alone = evaluate(run.task, models, torch.eye(3), split=run.client_samples(client))["loss"]
        np.testing.assert_allclose(ds.mark_loss.sel(client=client).values[:3], alone.numpy(), rtol=1e-5)
    parts = torch.from_numpy(np.concatenate([run.parts[client] for client in ds.client.values.tolist()]))
    whole = evaluate(run.task, models, torch.eye(3), split=run.task.split("train")[parts])["loss"]
    np.testing.assert_allclose(ds.mark_loss_all.values[:3], whole.numpy(), rtol=1e-5)
    assert ds.loss.dims == ("alpha", "beta", "client")
