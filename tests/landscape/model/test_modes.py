"""Results inside of no_grad, inference_mode and autocast are those outside."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial

import pytest
import torch
import torch.nn.functional as F
import xarray as xr
from torch import Tensor, nn

import landscape

X = torch.randn(40, 5, generator=torch.Generator().manual_seed(1))
Y = X[:, :3].argmax(1)
CE = nn.CrossEntropyLoss()


def net(seed: int = 3) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))


def results() -> dict[str, object]:
    task = landscape.make_task(net(), CE, (X, Y))
    return {
        "loss": landscape.loss(task, net()),
        "hessian": landscape.hessian(task, net(), k=1),
        "gauss_newton": landscape.hessian(task, net(), k=1, curvature="gauss_newton"),
        "trace": landscape.trace(task, net(), products=50),
        "density": landscape.density(task, net()),
        "ball_sharpness": landscape.ball_sharpness(task, net(), steps=1, directions=2),
        "connecting_curve": landscape.connecting_curve(task, net(), net(4), steps=2).points,
        "surface": landscape.surface(task, net(), net(4)),
        "outputs": task.outputs(net(), "train"),
    }


MODES: dict[str, AbstractContextManager[object]] = {
    "no_grad": torch.no_grad(),
    "inference_mode": torch.inference_mode(),
    "autocast": torch.autocast("cpu", dtype=torch.bfloat16),
}


@pytest.mark.seconds
@pytest.mark.parametrize("mode", MODES)
def test_results_do_not_depend_on_the_mode_of_the_caller(mode):
    expected = results()
    with MODES[mode]:
        found = results()
    for name, value in expected.items():
        if isinstance(value, xr.Dataset):
            xr.testing.assert_allclose(found[name], value, rtol=1e-4)
        else:
            torch.testing.assert_close(torch.as_tensor(found[name]), torch.as_tensor(value), msg=name)


def test_models_and_samples_made_in_inference_mode_have_curvature():
    with torch.inference_mode():
        model, inputs, targets = net(), X * 1, Y * 1
        task = landscape.Task(model, {"train": landscape.Samples(inputs, targets)})
    expected = landscape.trace(landscape.make_task(net(), CE, (X, Y)), net()).trace.item()
    for made in (task, landscape.make_task(model, CE, (inputs, targets))):
        assert landscape.trace(made, model).trace.item() == pytest.approx(expected, rel=1e-5)


class Detaching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


FUNCTIONS = {
    "hessian": partial(landscape.hessian, k=1),
    "trace": landscape.trace,
    "ball_sharpness": partial(landscape.ball_sharpness, steps=1),
    "connecting_curve": lambda task, model: landscape.connecting_curve(task, model, model, steps=1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_has_no_gradient_is_named(name):
    task = landscape.make_task(net(), lambda o, t: F.cross_entropy(o.detach(), t), (X, Y))
    assert landscape.loss(task, net()) == pytest.approx(F.cross_entropy(net()(X), Y).item(), rel=1e-6)
    with pytest.raises(ValueError, match=r"the loss <lambda> has no gradient: it detaches the outputs"):
        FUNCTIONS[name](task, net())
    task = landscape.make_task(Detaching(), CE, (X, Y))
    with pytest.raises(ValueError, match=r"Detaching has no .*(detaches the outputs|does not require grad)"):
        FUNCTIONS[name](task, Detaching())
