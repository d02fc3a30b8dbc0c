"""Digests of tasks: another one wherever a loss, a metric or the outputs are others; the same one everywhere else."""

from __future__ import annotations

import copy
import functools
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from landscape.geometry.lines import line
from landscape.model.held_values import digest
from landscape.model.make_task import make_task
from landscape.surfaces.surface import surface

ROOT = Path(__file__).resolve().parents[3]
SCALES = {"loss": 1.0}


@dataclass(slots=True)
class Settings:
    temperature: float = 1.0


class Net(nn.Linear):
    """Linear, after a frozen layer, with a temperature in a place that no repr names."""

    scale = 1.0

    def __init__(self, seed: int = 0, temperature: float = 1.0) -> None:
        super().__init__(5, 3)
        self.front = nn.Linear(5, 5).requires_grad_(False)
        for parameter in self.front.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed)))
        self.settings = [{"own": Settings(temperature)}]

    def forward(self, x):
        return super().forward(self.front(x)) * self.scale / self.settings[0]["own"].temperature


class Other(Net):
    def forward(self, x):
        return super().forward(x) + 1 * x[:, :3]


Other.__name__ = "Net"


def data(shift=0):
    draw = torch.Generator().manual_seed(1)
    return torch.randn(70, 5, generator=draw), (torch.randint(3, (70,), generator=draw) + shift) % 3


def factor(k):
    return lambda outputs, targets: k * F.cross_entropy(outputs, targets, reduction="none")


def helped(outputs, targets):
    return _helper(outputs, targets)


def _helper(outputs, targets):
    return SCALES["loss"] * F.cross_entropy(outputs, targets, reduction="none")


def weighted(*weights):
    return nn.CrossEntropyLoss(weight=torch.tensor(weights))


def hooked(k):
    net = Net()
    net.register_forward_hook(lambda layer, received, outputs: k * outputs)
    return net


def scaled():
    return type("Net", (Net,), {"scale": 2.0})()


def half_error(outputs, targets):
    return 0.5 * (outputs.argmax(1) != targets)


PAIRS = {
    "label smoothing": [(Net, nn.CrossEntropyLoss(label_smoothing=smoothing)) for smoothing in (0.1, 0.3)],
    "class weights": [(Net, weighted(1.0, 2.0, 3.0)), (Net, weighted(9.0, 1.0, 1.0))],
    "factor in a closure": [(Net, factor(1.0)), (Net, factor(2.0))],
    "factor of a partial": [(Net, functools.partial(lambda o, t, k: factor(k)(o, t), k=k)) for k in (1, 2)],
    "temperature": [(Net, nn.CrossEntropyLoss()), (functools.partial(Net, temperature=5.0), nn.CrossEntropyLoss())],
    "frozen layer": [(Net, nn.CrossEntropyLoss()), (functools.partial(Net, seed=1), nn.CrossEntropyLoss())],
    "forward": [(Net, nn.CrossEntropyLoss()), (Other, nn.CrossEntropyLoss())],
    "hook": [(functools.partial(hooked, k), nn.CrossEntropyLoss()) for k in (1, 2)],
    "attribute of the class": [(type("Net", (Net,), {}), nn.CrossEntropyLoss()), (scaled, nn.CrossEntropyLoss())],
}


@pytest.mark.parametrize("name", PAIRS)
def test_another_function_has_another_digest_and_other_trained_parameters_have_not(name):
    first, second = (make_task(model(), loss, data()) for model, loss in PAIRS[name])
    x = data()[0]
    theta = torch.linspace(-1, 1, first.layout.size)
    values = [
        surface(task, line(theta, 2 * theta, points=2), metrics=("loss",)).loss.values for task in (first, second)
    ]
    assert not np.allclose(*values)
    assert first.digest(first.samples["test"]) != second.digest(second.samples["test"])
    model, loss = PAIRS[name][0]
    again = make_task(model(), copy.deepcopy(loss), (x.clone(), data()[1]))
    assert not torch.equal(again.theta, first.theta)
    assert again.digest(again.samples["test"]) == first.digest(first.samples["test"])


def test_globals_of_the_file_data_and_metrics_count(monkeypatch):
    task = make_task(Net(), helped, data())
    samples = task.samples["test"]
    own = task.digest(samples)
    assert task.digest(make_task(Net(), helped, data(1)).samples["test"]) != own
    assert replace(task, metrics={"error": half_error}).digest(samples) != own
    monkeypatch.setitem(SCALES, "loss", 3.0)
    assert task.digest(samples) != own


def test_mode_does_not_count_and_buffers_do():
    net = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    tasks = [make_task(model, nn.CrossEntropyLoss(), data()) for model in (net.train(), net.eval())]
    assert tasks[0].digest() == tasks[1].digest()
    net[1].running_mean += 1
    assert make_task(net, nn.CrossEntropyLoss(), data()).digest() != tasks[0].digest()
    odd = [torch.eye(2).to_sparse(), torch.ones(2, dtype=torch.complex64).conj(), torch.ones(1, dtype=torch.bfloat16)]
    assert digest(odd, {1: 2.0, 2: 1.0}) == digest(odd, {1: 2.0, 2: 1.0}) != digest(odd, {1: 1.0, 2: 2.0})
    assert digest([1], [2]) != digest([1, 2]) != digest([[1, 2]])


@pytest.mark.slow
def test_another_process_has_the_same_digest():
    code = "from tests.landscape.model.test_held import *; print(make_task(Net(), helped, data()).digest({'a', 'b'}))"
    again = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(ROOT)},
    )
    assert again.stdout.split() == [make_task(Net(), helped, data()).digest({"a", "b"})]


def test_code_without_a_module_counts_by_its_name():
    def loss(outputs, targets):
        return (outputs - targets).square().mean()

    loss.__module__ = None
    assert digest(loss) == digest(loss)
