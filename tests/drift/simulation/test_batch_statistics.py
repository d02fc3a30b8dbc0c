"""Models with batch normalisation: batches of one, averaged buffers, buffers that are not finite, frozen bodies."""

import numpy as np
import pytest
import tiny
import torch
from torch import nn

from drift.config.experiment import Local
from drift.config.load import read, validated
from drift.config.method import Method
from drift.simulation.simulate import simulate
from drift.training.client import Client
from drift.training.data import build_task, read_data


def test_a_client_with_non_finite_batch_statistics_is_excluded(tmp_path, monkeypatch):
    def local(self, client):
        update = client.train()
        if client.id == bad:
            update.buffers[-1] = torch.inf
        return update

    settings = {**tiny.DIGITS, "rounds": 1, "task": NORMALISED}
    bad = int(simulate(validated(settings), runs=tmp_path / "sound").round(0).ids[0])
    monkeypatch.setattr(Method, "local", local)
    record = simulate(validated(settings), runs=tmp_path / "spoiled").round(0)
    assert record.extras["excluded"].tolist() == [bad]
    assert bool(torch.isfinite(record.end_buffers).all())


def normalised(shape, classes):
    """A model with batch statistics, as users' own models have them."""
    features = int(np.prod(shape))
    return nn.Sequential(nn.Flatten(), nn.Linear(features, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, classes))


NORMALISED = {"dataset": "digits", "model": f"{__name__}:normalised", "train_samples": 200}


@pytest.mark.parametrize(
    ("samples", "batch", "steps", "sizes"),
    [
        (9, 4, None, [4, 4]),  # the last one alone is dropped
        (9, 4, 3, [4, 4, 4]),
        (10, 4, None, [4, 4, 2]),
        (3, 1, 4, [1, 1, 1, 1]),  # asked for; whether the model takes it is the model's affair
        (1, 4, None, []),
        (1, 4, 3, []),
    ],
)
def test_batches_of_one_are_dropped_before_batch_statistics(samples, batch, steps, sizes):
    task = build_task(
        validated({**tiny.DIGITS, "task": NORMALISED}), read_data(validated({**tiny.DIGITS, "task": NORMALISED}), None)
    )
    client = Client(
        id=0,
        index=0,
        seed=1,
        samples=task.samples["train"][:samples],
        start=task.theta,
        buffers=task.buffers,
        local=Local(batch=batch, steps=steps, epochs=1),
        flat=task.flat(task.theta),
    )
    assert [len(part) for part in client.batches()] == sizes


def test_buffers_are_averaged_and_fedlaw_takes_them_from_the_proxy_set(tmp_path):
    experiment = validated({**tiny.DIGITS, "task": NORMALISED, "rounds": 2})
    run = simulate(experiment, runs=tmp_path)
    record = run.round(-1)
    assert record.end_buffers.shape == (10,)
    torch.testing.assert_close(record.end_buffers, record.shares.to(record.end) @ record.client_buffers)
    again = run.method.local(run.client(1, int(record.ids[0])))
    assert torch.equal(again.buffers, record.client_buffers[0])

    law = simulate(read(experiment, "proxy.per_class=5", "method.name=fedlaw", "method.server_epochs=2"), runs=tmp_path)
    last = law.round(-1)
    hidden = law.task.layout.named(last.end)
    inputs = law.task.samples["proxy"].inputs.flatten(1)
    mean = (inputs @ hidden["1.weight"].T + hidden["1.bias"]).mean(0)
    torch.testing.assert_close(last.end_buffers[:5], mean, rtol=1e-4, atol=1e-5)


def test_a_frozen_backbone_leaves_only_the_head_in_theta(tmp_path):
    task = {**tiny.DIGITS["task"], "freeze_backbone": True}
    run = simulate(validated({**tiny.DIGITS, "task": task, "rounds": 1}), runs=tmp_path)
    assert {name.split(".")[0] for name, _ in run.task.layout.parameters} == {"head"}
    record = run.round(0)
    assert not torch.equal(record.start, record.end)
    with pytest.raises(ValueError, match="has none; leave it out"):
        simulate(validated({**tiny.DIGITS, "task": {**task, "model": f"{__name__}:normalised", "model_options": {}}}))
