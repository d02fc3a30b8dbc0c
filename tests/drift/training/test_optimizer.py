"""The local optimiser against torch.optim, bit for bit."""

from __future__ import annotations

import pytest
import torch

from drift.config.experiment import Local
from drift.training import optimizer
from drift.training.optimizer import Optimizer

OPTIONS = [
    {"momentum": 0.0},
    {"momentum": 0.9, "weight_decay": 0.01},
    {"optimizer": "adam", "weight_decay": 0.01},
    {"optimizer": "adam", "betas": (0.5, 0.9)},
]


def _torch(parameter: torch.nn.Parameter, local: Local) -> torch.optim.Optimizer:
    if local.optimizer == "adam":
        options = {"betas": local.betas, "weight_decay": local.weight_decay, "fused": True}
        return torch.optim.Adam([parameter], lr=local.lr, **options)
    options = {"momentum": local.momentum, "weight_decay": local.weight_decay, "fused": True}
    return torch.optim.SGD([parameter], lr=local.lr, **options)


@pytest.mark.parametrize("options", OPTIONS)
def test_steps_are_those_of_torch_bit_for_bit(options):
    local = Local(lr=0.1, **options)
    torch.manual_seed(0)
    theta, grad = torch.randn(37), torch.empty(37)
    parameter = torch.nn.Parameter(theta.clone())
    theirs, ours = _torch(parameter, local), Optimizer(theta, grad, local)
    for step in range(5):
        grad.copy_(torch.randn(37))
        parameter.grad = grad.clone()
        theirs.param_groups[0]["lr"] = 0.1 * 0.5**step
        theirs.step()
        ours.step(0.5**step)
        assert torch.equal(theta, parameter.detach())


@pytest.mark.parametrize("options", OPTIONS)
def test_kept_moments_go_on_as_if_never_interrupted(options):
    local = Local(lr=0.1, persist_optimizer=True, **options)
    torch.manual_seed(0)
    whole, parted, grad = torch.ones(5), torch.ones(5), torch.empty(5)
    gradients = torch.randn(4, 5)
    one, two = Optimizer(whole, grad, local), Optimizer(parted, grad, local)
    for step, gradient in enumerate(gradients):
        if step == 2:
            state = two.state()
            two = Optimizer(parted, grad, local)
            two.restore(state)
        for either in (one, two):
            grad.copy_(gradient)
            either.step()
    assert torch.equal(whole, parted)
    assert not Optimizer(whole, grad, Local()).state()


@pytest.mark.parametrize("options", OPTIONS)
def test_models_that_step_together_have_the_bits_of_each_alone(options):
    local = Local(lr=0.1, **options)
    torch.manual_seed(0)
    sizes = (1, 37, 1000)
    together, gradients = [torch.randn(size) for size in sizes], [torch.empty(size) for size in sizes]
    alone = [Optimizer(theta.clone(), grad, local) for theta, grad in zip(together, gradients, strict=True)]
    states = [optimizer.zero_moments(theta) for theta in together]
    momenta = [torch.zeros(size) for size in sizes] if local.momentum else []
    for step in range(4):
        for grad in gradients:
            grad.copy_(torch.randn(len(grad)))
        if local.optimizer == "adam":
            optimizer.adam(together, gradients, states, local, 0.9**step)
        else:
            optimizer.sgd(together, gradients, momenta, local, 0.9**step)
        for single in alone:
            single.step(0.9**step)
        assert all(torch.equal(theta, single.theta) for theta, single in zip(together, alone, strict=True))
