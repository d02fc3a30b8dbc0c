"""The shared first layer with its pool has the bits of the layers one by one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.sweep import worker
from landscape.sweep.evaluate import evaluate, sweep_work
from landscape.sweep.pooled_first_layer import PooledFirstLayer
from tests.oracles import thetas

ROWS = {
    "between": [[0.2, 0.3, 0.5], [0.1, 0.4, 0.5], [-0.4, 0.8, 0.6]],
    "around": [[1.0, 0.3, 0.5], [1.0, -0.4, 0.5], [1.0, 0.8, -0.6]],
    "anywhere": [[0.0, 0.0, 1.0], [0.3, 0.0, 0.3], [0.0, 0.0, 0.0], [2.0, 1.0, -1.0]],
}


def _task(*behind: nn.Module, size: tuple[int, int] = (12, 13), rest: int = 4 * 4 * 4) -> Task:
    model = nn.Sequential(nn.Conv2d(3, 4, 5), *behind, nn.Flatten(), nn.Linear(rest, 7))
    inputs = torch.randn(11, 3, *size, generator=torch.Generator().manual_seed(0))
    return Task(model, {"test": Samples(inputs, torch.arange(11) % 7)})


def _worker(task: Task) -> worker.Worker:
    return worker.Worker(sweep_work(task, thetas(task, 3)))


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("relu", [True, False])
def test_values_have_the_bits_of_the_layers_one_by_one(monkeypatch, kind, relu):
    task = _task(nn.MaxPool2d(2), *([nn.ReLU()] if relu else [nn.Tanh()]))
    shared = _worker(task).shared
    assert isinstance(shared, PooledFirstLayer)
    pooled = evaluate(task, thetas(task, 3), ROWS[kind], block=4)["loss"]
    monkeypatch.setattr(worker, "pooled_first_layer", lambda flat, shared, *_: shared)
    assert torch.equal(pooled, evaluate(task, thetas(task, 3), ROWS[kind], block=4)["loss"])


def test_a_broken_model_gives_no_finite_value():
    task = _task(nn.MaxPool2d(2), nn.ReLU())
    basis = thetas(task, 3)
    basis[1] = torch.nan
    values = evaluate(task, basis, [[0.2, 0.3, 0.5], [0.5, 0.0, 0.5]])["loss"]
    assert values[0].isnan()
    assert values[1].isfinite()


def _hooked() -> Task:
    pool = nn.MaxPool2d(2)
    pool.register_forward_hook(lambda module, inputs, output: output + 1)
    return _task(pool)


@pytest.mark.parametrize(
    "make",
    [
        lambda: _task(nn.ReLU(), nn.MaxPool2d(2)),
        lambda: _task(nn.MaxPool2d(3, 2), rest=4 * 3 * 4),
        lambda: _task(nn.MaxPool2d(2, padding=1), rest=4 * 5 * 5),
        _hooked,
    ],
    ids=["another order", "another window", "padding", "a hook"],
)
def test_other_layers_are_computed_by_themselves(make):
    assert not isinstance(_worker(make()).shared, PooledFirstLayer)


def test_a_single_model_is_left_to_the_layers_with_the_same_bits():
    task = _task(nn.MaxPool2d(2), nn.ReLU())
    basis = thetas(task, 3)
    assert not isinstance(worker.Worker(sweep_work(task, basis[:1])).shared, PooledFirstLayer)
    alone = evaluate(task, basis[:1], [[1.0]], block=4)["loss"]
    assert torch.equal(alone, evaluate(task, basis, [[1.0, 0.0, 0.0]], block=4)["loss"])
