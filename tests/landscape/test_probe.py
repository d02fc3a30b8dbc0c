"""Private parts of other libraries: each raises, is absent or returns other values, and every number stays right."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from landscape.batched_training.dense_stacks import DenseGradients, relu_slope
from landscape.measures import cost
from landscape.model.hooks import hooked
from landscape.model.input_format import habits, writes
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.probe import close_outputs, probed
from landscape.sweep.evaluate import evaluate

PROBES = (relu_slope, hooked, writes, cost._watched, cost._formulas)


@pytest.fixture(autouse=True)
def _unused_probes(monkeypatch):
    for probe in PROBES:
        monkeypatch.setattr(probe, "works", True)
        monkeypatch.setattr(probe, "_compared", set())


def _raises(*_, **__):
    raise RuntimeError("an argument was renamed")


class Part:
    """A namespace of `torch.ops` in which one operation is absent or another one."""

    def __init__(self, whole, name, operation=None):
        self.whole, self.name, self.operation = whole, name, operation

    def __getattr__(self, name):
        if name != self.name:
            return getattr(self.whole, name)
        if self.operation is None:
            raise AttributeError(name)
        return self.operation


def _broken(monkeypatch, namespace, name, fault):
    """Break one operation in a way."""
    whole = getattr(torch.ops, namespace)
    own = getattr(whole, name)

    def other(*given):
        return 1.01 * own(*given)

    operations = {"raises": _raises, "absent": None, "other values": other}
    monkeypatch.setattr(torch.ops, namespace, Part(whole, name, operations[fault]))


class Residual(nn.Module):
    """Convolutions with normalisation, a sum, and a large dense layer."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.second, self.other = nn.Conv2d(6, 6, 3, padding=1, stride=1), nn.BatchNorm2d(6)
        self.third, self.last = nn.Conv2d(6, 8, 3), nn.Linear(8 * 5 * 6, 40)

    def forward(self, inputs):
        skip = self.norm(self.first(inputs)).relu()
        out = (self.other(self.second(skip)) + skip).relu()
        return self.last(self.third(out).flatten(1))


def _task(model):
    generator = torch.Generator().manual_seed(1)
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean = torch.randn(layer.num_features, generator=generator) / 3
            layer.running_var = torch.rand(layer.num_features, generator=generator) + 0.5
    inputs = torch.randn(11, 3, 7, 8, generator=generator)
    return Task(model, {"test": Samples(inputs, torch.arange(11) % 40)})


def _losses(task, basis, rows):
    """Losses by torch's own layers in float64."""
    model, samples = task.model.double().eval(), task.samples["test"]
    found = []
    for row in rows:
        values = (row[:, None].double() * basis.double()).sum(0)
        nn.utils.vector_to_parameters(values, model.parameters())
        found.append(nn.functional.cross_entropy(model(samples.inputs.double()), samples.targets))
    model.float()
    return torch.stack(found).detach()


def _check_sweeps():
    torch.manual_seed(0)
    task = _task(Residual())
    basis = torch.stack([task.theta, 0.5 * task.theta + 0.01, -task.theta])
    rows = torch.tensor([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.1, 0.8, 0.1]])
    losses = evaluate(task, basis, rows, buffers=task.buffers.expand(3, -1), block=4)["loss"]
    torch.testing.assert_close(losses, _losses(task, basis, rows), rtol=1e-4, atol=0)


def _check_training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))
    samples = Samples(torch.randn(2 * 6, 5), torch.arange(12) % 3)
    task = Task(model, {"train": samples})
    gradients = DenseGradients.from_model(task.flat(task.theta))
    if gradients is None:
        return  # other gradients take their place
    thetas = torch.stack([task.theta, 2 * task.theta])
    out = torch.empty_like(thetas)
    inputs, targets = samples.inputs.view(2, 6, 5), samples.targets.view(2, 6)
    gradients.gradient([thetas], inputs, targets, torch.full((2, 6), 1 / 6), [out])
    for place in range(2):
        double = task.model.double()
        nn.utils.vector_to_parameters(thetas[place].double(), double.parameters())
        loss = nn.functional.cross_entropy(double(inputs[place].double()), targets[place])
        expected = torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(double.parameters()))])
        torch.testing.assert_close(out[place].double(), expected, rtol=1e-5, atol=1e-7)


FAULTS = ("raises", "absent", "other values")


@pytest.mark.parametrize("fault", FAULTS)
def test_training_is_right_whatever_becomes_of_the_slope_of_relu(monkeypatch, fault):
    _broken(monkeypatch, "aten", "threshold_backward", fault)
    _check_training()
    assert not relu_slope.works


def test_sweeps_and_training_are_right_with_all_parts_as_they_are():
    _check_sweeps()
    _check_training()
    assert all(probe.works for probe in PROBES)


class Changing(nn.Module):
    """Changes its inputs in place."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(4, 3)

    def forward(self, inputs):
        return self.last(inputs.mul_(2))


OTHER = {
    "raises": _raises,
    "absent": lambda part: SimpleNamespace()._private,
    "always true": lambda part: True,
    "always false": lambda part: False,
}


@pytest.mark.parametrize("fault", OTHER)
def test_hooks_are_assumed_where_they_cannot_be_seen(monkeypatch, fault):
    monkeypatch.setattr(hooked, "private", OTHER[fault])
    assert hooked(nn.Linear(2, 2))
    _check_sweeps()
    _check_training()
    assert not hooked.works


@pytest.mark.parametrize("fault", OTHER)
def test_inputs_are_copied_where_changes_cannot_be_seen(monkeypatch, fault):
    monkeypatch.setattr(writes, "private", OTHER[fault])
    inputs = torch.ones(3, 4)
    assert habits(nn.Linear(4, 3), inputs).copies
    assert habits(Changing(), inputs).copies
    assert torch.equal(inputs, torch.ones(3, 4))


@pytest.mark.parametrize("private", [_raises, lambda: SimpleNamespace()._private, dict])
def test_memory_is_missing_where_torch_does_not_show_it(monkeypatch, private):
    monkeypatch.setattr(cost._watched, "private", private)
    found = cost.measure_cost(lambda: torch.ones(3, 4) @ torch.ones(4, 2), repeats=1)
    assert found.memory != found.memory and found.seconds > 0 and found.macs == 24


def test_products_are_counted_where_the_own_formulas_cannot_be_used(monkeypatch):
    monkeypatch.setattr(cost._formulas, "private", _raises)
    assert cost.measure_cost(lambda: torch.ones(3, 4) @ torch.ones(4, 2), repeats=1).macs == 24


def test_a_private_part_is_compared_once_with_each_shape_and_left_for_good():
    called = []

    def private(values):
        called.append("private")
        return values * (2 if len(values) < 5 else 2.01)

    def public(values):
        called.append("public")
        return 2 * values

    double = probed(public)(private)
    assert torch.equal(double(torch.ones(3)), torch.full((3,), 2.0))
    double(torch.ones(3))
    assert called == ["private", "public", "private"]
    assert torch.equal(double(torch.ones(6)), torch.full((6,), 2.0))
    double(torch.ones(3))
    assert called == ["private", "public", "private", "private", "public", "public"]


@pytest.mark.parametrize(("dtype", "share"), [(torch.float32, 9e-5), (torch.float64, 1e-12)])
def test_a_value_that_is_off_by_more_than_rounding_is_not_trusted(dtype, share):
    product = probed(torch.matmul)(lambda first, second: (1 + share) * (first @ second))
    exact = probed(torch.matmul)(lambda first, second: first @ second.T.contiguous().T)
    first, second = torch.rand(30, 4000, dtype=dtype), torch.rand(4000, 20, dtype=dtype)
    assert torch.equal(product(first, second), first @ second)
    exact(first, second)
    assert exact.works
    assert not product.works


def test_what_is_not_finite_says_nothing_of_a_private_part():
    double = probed(lambda values: 2 * values)(lambda values: values + values)
    assert double(torch.tensor([torch.nan, 1.0])).isnan()[0]
    assert double.works and torch.equal(double(torch.ones(2)), torch.full((2,), 2.0)) and double.works


def test_an_error_of_the_caller_rises_and_says_nothing_of_a_private_part():
    product = probed(torch.matmul)(lambda left, right: left @ right)
    with pytest.raises(RuntimeError, match="shapes"):
        product(torch.ones(2, 3), torch.ones(4, 5))
    assert product.works


def test_too_little_memory_is_the_callers_and_leaves_the_private_part_in_use():
    """A sweep tries fewer models then; had the public way taken over, their last bits would be others."""
    room = [2]

    def private(values):
        if len(values) > room[0]:
            raise RuntimeError("std::bad_alloc")
        return 2 * values

    double = probed(lambda values: 2 * values)(private)
    with pytest.raises(RuntimeError, match="bad_alloc"):
        double(torch.ones(3))
    assert double.works and torch.equal(double(torch.ones(2)), torch.full((2,), 2.0))


def test_rounding_is_a_share_of_the_largest_entry():
    plain = torch.tensor([1.0, 0.0, -4.0])
    near, far = plain + torch.tensor([0.0, 3e-6, 0.0]), plain + torch.tensor([0.0, 5e-6, 0.0])
    assert close_outputs(near, plain, 1e-6)
    assert not close_outputs(far, plain, 1e-6)
