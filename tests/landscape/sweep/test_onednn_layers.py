"""Other implementations of the same layers."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.sweep import onednn_calls, worker
from landscape.sweep.evaluate import evaluate
from landscape.sweep.onednn_layers import _max_pool, packable_forwards, use_onednn


@pytest.mark.parametrize("shape", [(3, 5, 6, 8), (2, 1, 7, 9)])
def test_the_max_pool_has_the_bits_of_torchs_own(shape):
    inputs = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    inputs[0, 0, 2, 3] = torch.nan
    inputs = inputs.contiguous(memory_format=torch.channels_last)
    forward = _max_pool(nn.MaxPool2d(2))
    assert torch.equal(forward(inputs).nan_to_num(7), F.max_pool2d(inputs, 2).nan_to_num(7))
    assert _max_pool(nn.MaxPool2d(2, padding=1)) is None
    assert _max_pool(nn.MaxPool2d(3)) is None


def test_a_quickened_model_computes_the_same():
    model = nn.Sequential(nn.Conv2d(2, 8, 3), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 4 * 4, 96))
    samples = Samples(torch.randn(5, 2, 10, 10, generator=torch.Generator().manual_seed(0)), torch.arange(5))
    task = Task(model, {"test": samples})
    flat = task.flat(task.theta)
    with torch.no_grad():
        use_onednn(flat, samples[:2])
        torch.testing.assert_close(flat.outputs(samples.inputs), model(samples.inputs), rtol=1e-4, atol=1e-5)
        double = task.flat(task.theta.double())
        assert use_onednn(double, samples[:2]) == []


class Kept(nn.Sequential):
    """Returns what its ReLU received beside what it made of it."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        before = self[0](inputs)
        return torch.cat([before, self[1](before)], 1)


@pytest.mark.parametrize("outer", [nn.Identity(), nn.ReLU()])
def test_relu_works_in_place_only_where_nobody_reads_its_input(outer):
    body = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), outer, Kept(nn.Linear(5, 4), nn.ReLU()))
    samples = Samples(torch.randn(9, 6, generator=torch.Generator().manual_seed(0)), torch.arange(9))
    task = Task(body, {"test": samples})
    flat = task.flat(task.theta)
    with torch.no_grad():
        assert use_onednn(flat, samples) == ["1"]
        received = samples.inputs.clone()
        torch.testing.assert_close(flat.outputs(samples.inputs), body(samples.inputs))
    assert torch.equal(received, samples.inputs)


def test_packed_weights_are_made_once_a_point_and_change_nothing(monkeypatch):
    task = Task(
        nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Linear(288, 40)
        ),
        {
            "test": Samples(
                torch.randn(50, 1, 18, 18, generator=torch.Generator().manual_seed(0)), torch.arange(50) % 40
            )
        },
    )
    basis = torch.stack([task.theta, -task.theta, 0.5 * task.theta + 0.1])
    rows = torch.tensor([[0.2, 0.3, 0.5], [0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [0.1, 0.1, 0.8]])
    made = []
    packed_once = onednn_calls._packed
    monkeypatch.setattr(
        onednn_calls,
        "_packed",
        lambda packs, weight, pack: packed_once(packs, weight, lambda: made.append(weight) or pack()),
    )
    packed = evaluate(task, basis, rows, block=16)
    again = evaluate(task, basis, rows.flip(0), block=16, memory=1)
    used = worker.Worker(_work(task, basis))
    layers = len(packable_forwards(used.flat))
    assert layers >= 2 and len(made) in {2 * 4 * layers, 2 * 4 * (layers - 1)}  # the first layer may be shared
    monkeypatch.setattr(worker, "packable_forwards", lambda _: [])
    plain = evaluate(task, basis, rows, block=16)
    assert all(torch.equal(packed[name], plain[name]) for name in plain)
    assert all(torch.equal(packed[name], again[name].flip(0)) for name in plain)


def _work(task: Task, basis: torch.Tensor) -> worker.Work:
    return worker.Work(task, basis, None, task.samples["test"], None, task.measures(None), None, None)
