"""Gradients of many models at once, by hand and by vmap, against autograd on one after the other."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from landscape.batched_training.dense_stacks import DenseGradients
from landscape.batched_training.per_model_gradients import VmapGradients, model_gradients, single_model_gradient
from landscape.model.samples import Samples
from landscape.model.task import Task, cross_entropy, squared_error
from landscape.models import build_model
from landscape.models._blocks import Classifier

MODELS = {
    "mlp": (lambda: build_model("mlp", (1, 2, 3), 4, seed=0, hidden=[5, 7]), DenseGradients),
    "linear": (lambda: build_model("linear", (1, 2, 3), 4, seed=0), DenseGradients),
    "without bias": (
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(6, 5, bias=False), nn.ReLU(), nn.Linear(5, 4)),
        DenseGradients,
    ),
    "tanh": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4)), VmapGradients),
    "convolution": (
        lambda: Classifier(
            nn.Sequential(nn.Conv2d(1, 3, 2), nn.GroupNorm(3, 3), nn.ReLU(), nn.Flatten()), nn.Linear(6, 4)
        ),
        VmapGradients,
    ),
}


def _task(model: nn.Module, loss=cross_entropy) -> Task:
    return Task(model.double(), {"train": Samples(torch.zeros(1, 1, 2, 3), torch.zeros(1, dtype=torch.int64))}, loss)


def _compared(task: Task, targets: torch.Tensor) -> None:
    torch.manual_seed(1)
    thetas = task.theta + 0.3 * torch.randn(3, task.layout.size, dtype=torch.float64)
    inputs = torch.randn(3, 5, 1, 2, 3, dtype=torch.float64)
    weights = torch.rand(3, 5, dtype=torch.float64)
    weights[1, 2:] = 0
    flat = task.flat(thetas)
    made = model_gradients(flat)
    for columns in ([slice(0, task.layout.size)], made.columns):
        blocks = [thetas[:, part].contiguous() for part in columns]
        out = [torch.full_like(block, torch.nan) for block in blocks]
        losses = made.gradient(blocks, inputs, targets, weights, out)
        for row in range(3):
            loss, gradient = single_model_gradient(flat, thetas[row], inputs[row], targets[row], weights[row])
            torch.testing.assert_close(losses[row], loss)
            torch.testing.assert_close(torch.cat(out, 1)[row], gradient)


@pytest.mark.parametrize("name", MODELS)
def test_rows_are_the_gradients_of_each_model_on_its_own_samples(name):
    build, kind = MODELS[name]
    task = _task(build())
    assert type(model_gradients(task.flat(task.theta))) is kind
    _compared(task, torch.randint(4, (3, 5), generator=torch.Generator().manual_seed(2)))


@pytest.mark.parametrize("name", ["mlp", "tanh"])
def test_rows_take_any_loss(name):
    targets = torch.randn(3, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    _compared(_task(MODELS[name][0](), squared_error), targets)


def test_models_whose_samples_are_not_independent_are_refused():
    for layer in (nn.BatchNorm1d(5), nn.Dropout(0.5)):
        model = nn.Sequential(nn.Flatten(), nn.Linear(6, 5), layer, nn.Linear(5, 4))
        task = _task(model)
        with pytest.raises(ValueError, match=type(layer).__name__):
            model_gradients(task.flat(task.theta))


def test_a_chain_that_is_not_plain_is_not_taken_for_one():
    twice = nn.Linear(6, 6)
    frozen = nn.Sequential(nn.Flatten(), nn.Linear(6, 6), nn.Linear(6, 4))
    frozen[1].requires_grad_(False)
    hooked = nn.Sequential(nn.Flatten(), nn.Linear(6, 4))
    hooked[1].register_forward_hook(lambda module, given, made: 2 * made)
    for model in (nn.Sequential(nn.Flatten(), twice, twice), frozen, hooked):
        task = _task(model)
        assert DenseGradients.from_model(task.flat(task.theta)) is None
    _compared(_task(frozen), torch.randint(4, (3, 5), generator=torch.Generator().manual_seed(2)))
