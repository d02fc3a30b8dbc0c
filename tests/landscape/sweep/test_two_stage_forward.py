"""Forward passes in two stages."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from landscape import models
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.sweep import worker
from landscape.sweep.evaluate import evaluate
from landscape.sweep.layer_forward import replacement
from landscape.sweep.onednn_layers import use_onednn
from landscape.sweep.two_stage_forward import Stages, split_stages
from tests.oracles import thetas

IMAGES = {
    "cnn_fmnist": (1, 28, 28),
    "cnn_cifar10": (3, 32, 32),
    "cnn_digit5": (3, 28, 28),
    "lenet5": (1, 28, 28),
    "mlp": (1, 28, 28),
    "resnet8": (3, 16, 16),
    "vgg11_gn": (3, 32, 32),
}
CUT = set(IMAGES) - {"mlp", "resnet8"}


def _task(model: nn.Module, shape: tuple[int, ...], count: int = 7) -> Task:
    inputs = torch.randn(count, *shape, generator=torch.Generator().manual_seed(0))
    return Task(model, {"test": Samples(inputs, torch.arange(count) % 10)})


def _cut(task: Task) -> tuple[Flat, Stages]:
    flat = task.flat(task.theta)
    return flat, split_stages(flat, task.split("test")[:2])


class Doubled(nn.Module):
    """A body that does more than call layers, with dense layers behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3)
        self.last = nn.Sequential(nn.Linear(4 * 10 * 10, 40), nn.Tanh(), nn.Linear(40, 10))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.last(2 * self.first(inputs).flatten(1))


@pytest.mark.parametrize("name", IMAGES)
@torch.no_grad()
def test_the_stages_of_a_shipped_model_make_its_outputs(name):
    task = _task(models.build_model(name, IMAGES[name], 10, seed=0), IMAGES[name])
    flat, found = _cut(task)
    samples = task.split("test")
    assert found.cut == (name in CUT)
    entered = [found.first(flat.cast(samples[start : start + 3].inputs)) for start in (0, 3, 6)]
    torch.testing.assert_close(found.last(torch.cat(entered)), flat.outputs(samples.inputs))


@torch.no_grad()
def test_a_body_that_is_no_chain_is_called_as_a_whole_and_left_as_it_was():
    task = _task(Doubled(), (1, 12, 12))
    flat, found = _cut(task)
    use_onednn(flat, task.split("test")[:2])
    forwards = [replacement(layer) for layer in flat.module.modules()]
    inputs = flat.cast(task.split("test").inputs)
    entered = found.first(inputs)
    assert found.cut
    assert entered.shape == (7, 400)
    assert [replacement(layer) for layer in flat.module.modules()] == forwards
    assert torch.equal(found.last(entered), flat.outputs(inputs))


def _hooked() -> nn.Module:
    model = Doubled()
    model.last[2].register_forward_hook(lambda module, inputs, output: output + 1)
    return model


def _frozen() -> nn.Module:
    model = Doubled()
    model.first.requires_grad_(False)
    return model


class Twice(Doubled):
    """Calls a dense layer twice."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(400, 400)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.last(self.last(self.first(inputs).flatten(1)))


@pytest.mark.parametrize(
    "build",
    [
        _hooked,
        _frozen,
        Twice,
        lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(200, 10)),
        lambda: nn.Sequential(nn.Conv2d(1, 40, 1), nn.Flatten(), nn.Linear(5760, 10)),
    ],
    ids=["a hook", "nothing trained before", "called twice", "few weights", "much to hold"],
)
@torch.no_grad()
def test_a_model_stays_whole_where_stages_would_be_wrong_or_useless(build):
    task = _task(build(), (1, 12, 12))
    flat, found = _cut(task)
    inputs = flat.cast(task.split("test").inputs)
    assert not found.cut
    assert torch.equal(found.last(found.first(inputs)), flat.outputs(inputs))


@pytest.mark.parametrize("options", [{}, {"block": 3}, {"workers": 2}, {"precision": "fast"}], ids=str)
def test_a_sweep_in_stages_has_the_values_of_whole_passes(monkeypatch, options):
    shape = IMAGES["cnn_fmnist"]
    task = _task(models.build_model("cnn_fmnist", shape, 10, seed=0), shape, count=40)
    basis = thetas(task, 3, spread=0.05)
    rows = torch.tensor([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [1.0, 0.4, -0.2]])
    monkeypatch.setattr(worker, "ROWS", 16)
    cut = evaluate(task, basis, rows, **options)["loss"]
    monkeypatch.setattr(worker, "split_stages", lambda flat, probe: Stages(flat, None, []))
    torch.testing.assert_close(cut, evaluate(task, basis, rows, **options)["loss"], rtol=1e-6, atol=0)
