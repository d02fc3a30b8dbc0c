"""Losses of clients on their own data are those of one model at a time, from one evaluation of three models."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch

from drift.analyses.samples.client_losses import client_losses
from landscape.sweep import evaluate as sweeps
from landscape.sweep.evaluate import model_metrics


@pytest.mark.parametrize("model", ["linear", "tiny:normalised"])
def test_own_losses_are_those_of_each_model_alone(model, tmp_path, monkeypatch):
    run = tiny.trained(tmp_path, f"task.model={model}", "clients.per_round=4")
    made, worker = [], sweeps.Worker
    monkeypatch.setattr(sweeps, "Worker", lambda work: made.append(work) or worker(work))
    ds, record = client_losses(run, round=1), run.round(1)
    assert len(made) == 2 * len(record.ids)  # on the common samples, and on the client's own
    for row, client in enumerate(record.ids.tolist()):
        own = run.task.split("train")[torch.from_numpy(np.asarray(run.parts_in(1)[client]))]
        for name, theta in (("own", record.clients[row]), ("start_own", record.start), ("end_own", record.end)):
            alone = model_metrics(run.task, theta, split=own)
            assert float(ds[f"{name}_loss"].sel(client=client)) == alone["loss"]
        assert (
            float(ds.own_error.sel(client=client)) == model_metrics(run.task, record.clients[row], split=own)["error"]
        )
