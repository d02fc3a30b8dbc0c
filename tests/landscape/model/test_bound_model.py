"""A module over one vector."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import landscape
from landscape.model.samples import Samples
from landscape.model.task import Task
from tests.oracles import cnn_task, mlp_task, quadratic, thetas


def test_gradient_equals_the_closed_form():
    oracle = quadratic(4)
    flat = oracle.task.flat(oracle.centre)
    theta = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    flat.load(theta)
    torch.testing.assert_close(flat.gradient(oracle.task.split("test")), oracle.loss(theta))
    torch.testing.assert_close(flat.grad, oracle.gradient(theta))


def test_gradient_does_not_accumulate():
    oracle = quadratic(4)
    flat = oracle.task.flat(oracle.centre)
    flat.gradient(oracle.task.split("train"))
    first = flat.grad.clone()
    flat.gradient(oracle.task.split("train"))
    assert torch.equal(flat.grad, first)


def test_parameters_are_views_of_theta():
    task = mlp_task()
    flat = task.flat(task.theta)
    flat.theta.zero_()
    assert all(not parameter.any() for parameter in flat.module.parameters())
    flat.theta.sub_(1)
    assert flat.module.get_parameter("0.weight")[0, 0] == -1


def test_the_callers_model_is_never_touched():
    task = cnn_task(norm=True)
    model = task.model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    flat = task.flat(task.theta)
    flat.training(True)
    flat.load(thetas(task, 1)[0], torch.full((8,), 2.0, dtype=torch.float64))
    flat.gradient(task.split("train"))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_buffers_are_views_and_follow_training():
    task = cnn_task(norm=True)
    flat = task.flat(task.theta)
    assert torch.equal(flat.buffers, task.buffers)
    flat.outputs(task.split("train").inputs)
    assert torch.equal(flat.buffers, task.buffers)  # eval mode
    flat.training(True)
    flat.outputs(task.split("train").inputs)
    assert not torch.equal(flat.buffers, task.buffers)


def test_functional_loss_equals_loading_and_has_two_derivatives():
    oracle = quadratic(3)
    flat = oracle.task.flat(oracle.centre)
    samples = oracle.task.split("test")
    theta = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)
    hessian = torch.autograd.functional.hessian(lambda point: flat.functional_loss(point, samples), theta)
    torch.testing.assert_close(hessian, oracle.matrix)
    assert torch.equal(flat.theta, oracle.task.theta)


def test_dtype_and_layout_follow_the_tensor_handed_in():
    task = cnn_task()
    flat = task.flat(task.theta.float())
    images = flat.cast(task.split("test").inputs)
    assert images.dtype == torch.float32
    assert images.is_contiguous(memory_format=torch.channels_last)
    assert flat.outputs(task.split("test").inputs).dtype == torch.float32


def test_a_model_that_is_loaded_forgets_the_batches_of_the_one_before():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, momentum=None), nn.Linear(4, 2))
    samples = Samples(torch.randn(6, 3), torch.tensor([0, 1] * 3))
    task = Task(model, {"train": samples})
    flat = task.flat(task.theta)
    found = []
    for _ in range(2):  # its running mean weighs a batch by the number of those before
        flat.load(task.theta, task.buffers)
        flat.training(True)
        flat.gradient(samples[:4])
        flat.gradient(samples[2:])
        found.append(flat.buffers.clone())
    assert torch.equal(found[0], found[1])


def test_a_layer_under_two_names_has_its_hessian_and_takes_the_next_model():
    shared, tied = nn.Linear(3, 3), nn.Linear(3, 3)
    tied.weight = shared.weight
    model = nn.Sequential(shared, nn.Tanh(), shared, nn.Tanh(), tied)
    inputs, targets = torch.randn(9, 3, generator=torch.Generator().manual_seed(1)), torch.arange(9) % 3
    task = Task(model, {"train": Samples(inputs, targets)})

    def loss(theta: torch.Tensor) -> torch.Tensor:
        weight, bias, last = theta[:9].view(3, 3), theta[9:12], theta[12:]
        units = torch.tanh(torch.tanh(inputs.double() @ weight.T + bias) @ weight.T + bias)
        return nn.functional.cross_entropy(units @ weight.T + last, targets)

    start = task.theta.double()
    hessian = torch.autograd.functional.hessian(loss, start)
    values = landscape.hessian(task, task.theta, k=3, which="largest").eigenvalue.values
    np.testing.assert_allclose(values, torch.linalg.eigvalsh(hessian).flip(0)[:3], rtol=1e-5)
    flat = task.flat(start)
    for theta in (start + 1, start - 1):
        torch.testing.assert_close(flat.functional_loss(theta, task.split("train")), loss(theta))
        flat.load(theta)
        torch.testing.assert_close(flat.gradient(task.split("train")), loss(theta))
