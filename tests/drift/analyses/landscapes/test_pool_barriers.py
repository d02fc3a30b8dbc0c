"""Paths in the pools of a tiny run."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from drift.analyses.landscapes.barriers import pool_barriers
from landscape.geometry.simplex import points as simplex_points
from landscape.model.batchnorm import recalibrate
from landscape.surfaces.barrier import barrier
from tests import tiny


@pytest.fixture(scope="module")
def pools(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "method=lss", "method.candidates=2", "rounds=2")


def test_pool_is_the_one_that_was_trained(pools):
    record = pools.round(-1)
    client = int(record.ids[1])
    ds = pool_barriers(pools, client=client, points=5, count=6)
    assert ds.barrier.shape == (3, 3)
    assert ds.loss.dims == ("value",)
    assert ds.attrs["client"] == client
    members = pools.method.pool(pools.client(record.index, client)).members
    torch.testing.assert_close(members.mean(0), record.clients[1], rtol=0, atol=0)
    assert torch.equal(members[0], record.start)
    alone = barrier(pools.task, members[0], members[2], points=5)
    assert float(ds.barrier[0, 2]) == pytest.approx(float(alone.barrier), abs=1e-6)
    mixed = simplex_points(members, 6, record.index).to(members) @ members
    targets = pools.task.samples["test"].targets
    losses = [float(pools.task.loss(pools.task.outputs(theta, "test"), targets).mean()) for theta in mixed]
    np.testing.assert_allclose(ds.loss, losses, rtol=1e-5)
    assert float(ds.loss_max) == float(ds.loss.max())


def test_runs_without_pools_are_refused(tmp_path):
    with pytest.raises(LookupError, match="trained by fedavg; pools of models are grown by lss"):
        pool_barriers(tiny.trained(tmp_path, "rounds=1"))


def test_batch_statistics_in_a_pool_are_those_of_the_client(tmp_path):
    task = 'task={dataset="digits",model="resnet8",train_samples=80}'
    run = tiny.trained(tmp_path, task, "rounds=1", "method=lss", "method.candidates=2")
    client, samples = run.client(0, int(run.round(0).ids[0])), run.task.samples["test"]
    members = run.method.pool(client).members
    ds = pool_barriers(run, points=3, count=2)
    assert (ds.attrs["statistics"], ds.attrs["calibration"]) == ("recomputed", len(client.samples))
    models = torch.stack([*members, (members[0] + members[2]) / 2])
    held = [recalibrate(run.task, theta, None, client.samples) for theta in models]
    outputs = [run.task.outputs(theta, "test", buffers=row) for theta, row in zip(models, held, strict=True)]
    losses = np.array([float(run.task.loss(found, samples.targets).mean()) for found in outputs])
    np.testing.assert_allclose(ds.mark_loss, losses[:3], rtol=1e-5)
    assert float(ds.midpoint[0, 2]) == pytest.approx(losses[3] - losses[[0, 2]].mean(), abs=1e-5)
    averaged = pool_barriers(run, points=3, count=2, statistics="averaged")
    np.testing.assert_array_equal(averaged.mark_loss, ds.mark_loss)
    assert not np.allclose(averaged.midpoint, ds.midpoint, atol=1e-4)
