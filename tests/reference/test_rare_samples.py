"""What only some samples, or some models, show: the first samples and the initial model look as if it was absent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import landscape
from landscape.model.samples import Samples
from landscape.model.task import Task

Between = Callable[[Tensor], object]


class Clamped(nn.Module):
    """Two layers, with functions at the inputs, between the layers and at the outputs."""

    def __init__(self, inputs: Between = id, between: Between = id, outputs: Between = id) -> None:
        super().__init__()
        self.a, self.relu, self.b = nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)
        self.functions = inputs, between, outputs

    def forward(self, x: Tensor) -> Tensor:
        inputs, between, outputs = self.functions
        inputs(x)
        hidden = self.a(x)
        between(hidden)
        result = self.b(self.relu(hidden))
        outputs(result)
        return result


def clamp(values: Tensor) -> None:
    values.clamp_(-2, 2)


def cap(values: Tensor) -> None:
    values[values > 2] = 2


def first_half(values: Tensor) -> None:
    values[:, : values.shape[1] // 2].clamp_(-1, 1)


def by_data(values: Tensor) -> None:
    values.data.clamp_(-2, 2)


def with_hook() -> nn.Module:
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    model[0].register_forward_hook(lambda layer, received, output: output.clamp(-2, 2))
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {
    "between": lambda: Clamped(between=clamp),
    "capped": lambda: Clamped(between=cap),
    "view": lambda: Clamped(between=first_half),
    "function": lambda: Clamped(between=lambda values: F.hardtanh(values, -2, 2, inplace=True)),
    "inputs": lambda: Clamped(inputs=clamp),
    "outputs": lambda: Clamped(outputs=lambda values: values.clamp_(-1, 1)),
    "hook": with_hook,
    "data": lambda: Clamped(between=by_data),
}


def samples() -> Samples:
    """Small inputs first, then large ones."""
    draw = torch.Generator().manual_seed(0)
    x, y = 4 * torch.randn(70, 6, generator=draw), torch.randint(3, (70,), generator=draw)
    x[:6] *= 0.01
    return Samples(x, y)


def model_of(name: str, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return MODELS[name]().eval()


def dense(module: nn.Module, data: Samples, theta: Tensor) -> tuple[float, Tensor]:
    """Loss () and Hessian (d, d) in float64, by torch alone."""
    module = module.double()
    shapes = {name: parameter.shape for name, parameter in module.named_parameters()}

    def loss(point: Tensor) -> Tensor:
        parts = point.split([shape.numel() for shape in shapes.values()])
        state = {name: part.view(shape) for part, (name, shape) in zip(parts, shapes.items(), strict=True)}
        outputs = torch.func.functional_call(module, state, (data.inputs.double().clone(),))
        return F.cross_entropy(outputs, data.targets)

    return float(loss(theta.double())), torch.autograd.functional.hessian(loss, theta.double())


@pytest.mark.parametrize("name", list(MODELS))
def test_what_a_function_between_layers_changes_in_place_counts(name):
    data = samples()
    task = Task(model_of(name, 1), {"train": data, "test": data})
    a, b = task.theta, Task(model_of(name, 2), {"train": data}).theta
    middle = 0.5 * (a + b)
    value, matrix = dense(model_of(name, 1), data, middle)
    largest = torch.linalg.eigvalsh(matrix).abs().max().item()
    assert float(landscape.surface(task, a, b).loss.sel(t=0.5)) == pytest.approx(value, rel=1e-5)
    if name == "data":  # the gradient passes it by
        with pytest.raises(ValueError, match="is not the derivative of its loss"):
            landscape.hessian(task, middle, k=1)
        return
    found = landscape.hessian(task, middle, k=1)
    assert abs(float(found.eigenvalue[0])) == pytest.approx(largest, rel=1e-4)
    assert float(landscape.trace(task, middle, products=200).trace) == pytest.approx(float(matrix.trace()), rel=1e-3)


class Masked(nn.Module):
    """A class that is impossible for some samples, so that their loss is infinite and its gradient is not."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        outputs = self.layer(x)
        impossible = torch.zeros_like(outputs, dtype=torch.bool)
        impossible[:, 2] = x[:, 0] > 1
        return outputs.masked_fill(impossible, -torch.inf)


@pytest.mark.parametrize("module", [Masked, lambda: nn.Sequential(Masked())])
def test_an_infinite_loss_has_no_curvature(module):
    data = samples()
    task = Task(module(), {"train": data})
    for measure in (landscape.hessian, landscape.trace, landscape.density, landscape.minibatch_sharpness):
        with pytest.raises(ValueError, match=r"the loss of sample \d+ is inf"):
            measure(task, task.theta)


def hard_samples(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean over samples whose loss is above a threshold: all of them before training."""
    losses = F.cross_entropy(outputs, targets, reduction="none")
    kept = losses > 0.2
    return losses[kept].mean() if bool(kept.any()) else losses.mean()


def test_a_loss_whose_samples_count_by_their_outputs_is_refused_at_the_model_that_shows_it():
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(3000, 3, generator=draw)
    x = x[(x.topk(2).values @ torch.tensor([1.0, -1.0])).argsort()]  # hard ones first
    y = x.argmax(1)
    initial, trained = nn.Linear(3, 3), nn.Linear(3, 3)
    with torch.no_grad():
        initial.weight.mul_(0.01)
        initial.bias.zero_()
        trained.weight.copy_(2 * torch.eye(3))
        trained.bias.zero_()
    task = landscape.make_task(initial, hard_samples, (x, y))
    whole = landscape.make_task(initial, hard_samples, (x, y), coupled=True)
    own = float(hard_samples(trained(x), y).detach())
    assert landscape.loss(task, initial) == pytest.approx(float(hard_samples(initial(x), y).detach()), rel=1e-5)
    assert landscape.loss(whole, trained) == pytest.approx(own, rel=1e-5)
    for measure in (landscape.loss, landscape.hessian, landscape.surface):
        with pytest.raises(ValueError, match="not a mean over samples at this model"):
            measure(task, trained)


def test_a_sum_with_cancelling_terms_is_no_false_alarm():
    draw = torch.Generator().manual_seed(1)
    x, y = 1e3 * torch.randn(500, 3, generator=draw), torch.randn(500, 2, generator=draw)
    model = nn.Linear(3, 2)
    task = landscape.make_task(model, lambda outputs, targets: (outputs * targets).mean(), (x, y))
    expected = (model.double()(x.double()) * y.double()).mean().item()
    assert landscape.loss(task, task.theta) == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(landscape.hessian(task, task.theta, k=2).eigenvalue, 0, atol=1e-6)
