"""Permutation alignment by weight matching."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from landscape.geometry.alignment import align, layer_stack, permute
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.models import build_model
from landscape.surfaces.aligned_barrier import aligned_barrier
from landscape.surfaces.barrier import barrier
from tests.oracles import mlp_task, thetas


def _task(model: nn.Module, shape: tuple[int, ...]) -> Task:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(7, *shape, generator=generator, dtype=torch.float64)
    return Task(model.double(), {"test": Samples(inputs, torch.arange(7) % 3)})


def mlp() -> Task:
    layers = [nn.Flatten(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 8, bias=False), nn.ReLU(), nn.Linear(8, 3)]
    return _task(nn.Sequential(*layers), (2, 3))


def cnn() -> Task:
    first = [nn.Conv2d(2, 5, 3), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Conv2d(5, 4, 3, padding=1), nn.ReLU()]
    last = [nn.Dropout(0.5), nn.Flatten(), nn.Linear(4 * 2 * 3, 7), nn.ReLU(), nn.Linear(7, 3)]
    return _task(nn.Sequential(*first, *last), (2, 6, 8))


def _shuffled(task: Task, theta: torch.Tensor) -> torch.Tensor:
    generator = np.random.default_rng(4)
    layers = layer_stack(task)
    return permute(layers, theta, [generator.permutation(layer.out) for layer in layers[:-1]])


@pytest.mark.parametrize("make", [mlp, cnn])
def test_a_known_permutation_is_undone_exactly(make):
    task = make()
    (theta,) = thetas(task, 1)
    shuffled = _shuffled(task, theta)
    assert not torch.equal(shuffled, theta)
    torch.testing.assert_close(task.outputs(shuffled, "test"), task.outputs(theta, "test"), rtol=1e-12, atol=1e-12)
    assert torch.equal(align(task, theta, shuffled), theta)


@pytest.mark.parametrize("make", [mlp, cnn])
def test_function_stays_and_distance_does_not_grow(make):
    task = make()
    a, b = thetas(task, 2)
    aligned = align(task, a, b)
    assert not torch.equal(aligned, b)
    torch.testing.assert_close(task.outputs(aligned, "test"), task.outputs(b, "test"), rtol=1e-12, atol=1e-12)
    assert float((a - aligned).norm()) < float((a - b).norm())
    torch.testing.assert_close(aligned.sort().values, b.sort().values, rtol=0, atol=0)


def test_one_hidden_layer_gets_the_best_of_all_orders():
    from itertools import permutations

    task = mlp_task()  # 5 hidden units: 120 orders
    a, b = thetas(task, 2)
    layers = layer_stack(task)
    likeness = [float(a @ permute(layers, b, [np.array(order)])) for order in permutations(range(5))]
    assert float(a @ align(task, a, b)) == pytest.approx(max(likeness), rel=1e-12)


def test_flatten_moves_all_places_of_a_channel_together():
    task = cnn()
    layers = layer_stack(task)
    assert [layer.name for layer in layers] == ["0", "3", "7", "9"]
    index = torch.arange(len(task.theta), dtype=torch.float64)
    order = np.array([2, 0, 3, 1])
    read = permute(layers, index, [np.arange(5), order, np.arange(7)])[layers[2].weight].view(7, 4, 6)
    torch.testing.assert_close(read, index[layers[2].weight].view(7, 4, 6)[:, order])


def test_barrier_before_and_after():
    task = mlp()
    a = thetas(task, 1, spread=1.0)[0]
    b = _shuffled(task, a)
    ds = aligned_barrier(task, a, b, points=5)
    assert float(ds.barrier) == pytest.approx(float(barrier(task, a, b, points=5).barrier))
    assert float(ds.aligned_barrier) == pytest.approx(0, abs=1e-12)
    assert float(ds.aligned_distance) == 0 < float(ds.distance)
    assert ds.aligned_loss.dims == ds.loss.dims == ("t",)


def test_a_model_without_hidden_units_is_left_as_it_is():
    task = _task(build_model("linear", (2, 3), 3, seed=0), (2, 3))
    a, b = thetas(task, 2)
    assert torch.equal(align(task, a, b), b)


@pytest.mark.parametrize("name", ["cnn_digits", "mlp", "lenet5"])
def test_shipped_stacks_are_understood(name):
    task = _task(build_model(name, (1, 10, 10), 3, seed=0), (1, 10, 10))
    theta = task.theta
    assert torch.equal(align(task, theta, _shuffled(task, theta)), theta)


class Skip(nn.Module):
    def __init__(self, in_place: bool) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.in_place = in_place

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        y = self.second(x)
        return self.head(y.add_(x) if self.in_place else x + y)


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(16, 3)), "'1' is a GroupNorm"),
        (
            nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 3)),
            r"is a BatchNorm2d; .* take landscape\.barrier",
        ),
        (nn.Sequential(nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 1, groups=2), nn.Flatten(), nn.Linear(16, 3)), "2 groups"),
        (nn.Sequential(nn.Flatten(), nn.Unflatten(1, (2, 8)), nn.Flatten(), nn.Linear(16, 6), Skip(False)), "does not"),
        (nn.Sequential(nn.Flatten(), nn.Linear(16, 6), Skip(True)), "changed the outputs"),
    ],
)
def test_what_is_no_stack_is_refused(model, complaint):
    task = _task(model, (1, 4, 4))
    with pytest.raises(ValueError, match=complaint):
        align(task, *thetas(task, 2))


def test_frozen_layers_are_refused():
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 6), nn.ReLU(), nn.Linear(6, 3))
    model[1].requires_grad_(False)
    task = _task(model, (1, 4, 4))
    with pytest.raises(ValueError, match=r"'1.weight' is frozen"):
        align(task, *thetas(task, 2))
