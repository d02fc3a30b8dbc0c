"""The first layer shared over a plane."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.sweep import first_layer
from landscape.sweep.evaluate import evaluate
from landscape.sweep.worker import blocks_and_sharing
from tests.oracles import thetas


class Tied(nn.Module):
    """Uses the first layer's weight a second time."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(80, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x) + F.linear(x, self.first.weight).tanh()


class Twice(Tied):
    """Calls the first layer twice, on different inputs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x) + self.first(x.roll(1, 1))


class Scaled(Tied):
    """Scales the first layer's input by a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(80))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x * self.scale)


class Preprocessed(Tied):
    """Changes the input first, without parameters."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first((x - 0.5) * 2).relu_()


def _task(model: nn.Module, shape: tuple[int, ...] = (80,), dtype: torch.dtype = torch.float64) -> Task:
    generator = torch.Generator().manual_seed(5)
    inputs = torch.randn(7, *shape, generator=generator, dtype=dtype)
    return Task(model.to(dtype), {"test": Samples(inputs, torch.arange(7) % 3)})


def _cnn() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 5, padding=2), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(4 * 6 * 7, 3))


def _both(task: Task, basis: torch.Tensor, rows: torch.Tensor, monkeypatch) -> tuple[torch.Tensor, torch.Tensor]:
    shared = evaluate(task, basis, rows, block=3)["loss"]
    monkeypatch.setattr(first_layer, "READ_COST", 10**9)
    return shared, evaluate(task, basis, rows, block=3)["loss"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sharing_is_used_on_a_cnn_and_changes_nothing(dtype, monkeypatch):
    task = _task(_cnn(), (3, 6, 7), dtype)
    basis = thetas(task, 3)
    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    shared = blocks_and_sharing(task.flat(basis), basis, task.split("test"))[1]
    assert shared is not None
    assert type(shared.layer) is nn.Conv2d
    found, plain = _both(task, basis, rows, monkeypatch)
    torch.testing.assert_close(found, plain, rtol=1e-6 if dtype == torch.float32 else 1e-12, atol=0)


def test_the_convolution_runs_once_a_basis_model_and_block(monkeypatch):
    task = _task(_cnn(), (3, 6, 7))
    basis, calls = thetas(task, 3), []
    plain = nn.Conv2d._conv_forward

    def counted(self, received, *parameters):
        calls.append(len(received))
        return plain(self, received, *parameters)

    monkeypatch.setattr(nn.Conv2d, "_conv_forward", counted)
    evaluate(task, basis, torch.ones(1, 3), block=3)  # tries the model
    calls.clear()
    evaluate(task, basis, torch.ones(2, 3), block=3)
    few = len(calls)
    evaluate(task, basis, torch.ones(20, 3), block=3)
    assert len(calls) == 2 * few


def test_sharing_is_used_after_steps_without_parameters(monkeypatch):
    task = _task(Preprocessed())
    basis = thetas(task, 2)
    assert blocks_and_sharing(task.flat(basis), basis, task.split("test"))[1] is not None
    found, plain = _both(task, basis, torch.tensor([[0.3, 0.9], [1.0, -1.0]]), monkeypatch)
    torch.testing.assert_close(found, plain, rtol=1e-12, atol=0)


class Again(Tied):
    """Calls the first layer's forward a second time, past its hooks."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x) + self.first.forward(x.roll(1, 1))


@pytest.mark.parametrize("model", [Tied, Twice, Again, Scaled])
def test_sharing_is_declined_where_it_would_be_wrong(model):
    task = _task(model())
    basis = thetas(task, 2)
    assert (blocks_and_sharing(task.flat(basis), basis, task.split("test"))[1] is None) == (model is not Tied)
    found = evaluate(task, basis, [[0.3, 0.9]])["loss"][0]
    outputs = task.outputs(0.3 * basis[0] + 0.9 * basis[1], "test")
    torch.testing.assert_close(found, F.cross_entropy(outputs, task.split("test").targets))


class Parted(Tied):
    """Calls the first layer on two samples at a time."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.first(part) for part in x.split(2)])


class Many(Tied):
    """Uses the first layer in another way for more than two samples, with the same result."""

    def __init__(self, use) -> None:
        super().__init__()
        self.use = use

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x) if len(x) <= 2 else self.use(self.first, x)


USES = [
    lambda first, x: (first(x) + first(x)) / 2,
    lambda first, x: F.linear(x, first.weight, first.bias),
    lambda first, x: first(input=x),
    lambda first, x: torch.cat([first(x[:1]), first(x[1:])]),
]


@pytest.mark.parametrize("model", [Parted(), *map(Many, USES)])
@pytest.mark.parametrize("block", [3, 4, 7])
def test_a_forward_that_depends_on_the_number_of_samples_is_followed(model, block):
    task = _task(model)
    basis, rows = thetas(task, 3), torch.randn(4, 3, generator=torch.Generator().manual_seed(2))
    blocks = task.split("test").inputs.split(block)
    for row, found in zip(rows, evaluate(task, basis, rows, block=block)["loss"], strict=True):
        flat = task.flat((row.to(basis) @ basis)[None])
        flat.load(row.to(basis) @ basis)
        outputs = torch.cat([flat.outputs(inputs) for inputs in blocks])
        torch.testing.assert_close(found, F.cross_entropy(outputs, task.split("test").targets).detach())


def test_a_layer_that_is_called_by_keyword_is_not_shared():
    class Keyword(Tied):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.first(input=x)

    task = _task(Keyword())
    basis = thetas(task, 2)
    assert blocks_and_sharing(task.flat(basis), basis, task.split("test"))[1] is None
    expected = F.cross_entropy(task.outputs(basis[1], "test"), task.split("test").targets)
    torch.testing.assert_close(evaluate(task, basis, [[0.0, 1.0]])["loss"][0], expected)


class Rare(nn.Module):
    """A parameter or buffer acts on samples of some kind only, before the first layer or behind it."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.own = kind, nn.Parameter(torch.ones(80) / 2)
        self.register_buffer("statistic", torch.ones(80) / 3)
        self.first, self.tied = nn.Linear(80, 3), nn.Linear(80, 3)
        self.tied.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rare = x > 50
        if self.kind == "token":
            x = x.where(~rare, self.own)
        elif self.kind == "detached":
            x = torch.where(rare, self.own.detach(), x)
        elif self.kind == "buffer":
            x = torch.where(rare, self.statistic, x)
        elif self.kind == "in place":
            x = x.clone()
            x.view(-1, 80)[rare] = self.own.expand_as(x)[rare]
        elif self.kind == "rare rows":
            x = x.clone()
            rows = rare.any(1)
            if len(x[rows]):
                x[rows] *= self.own
        outputs = self.first(x)
        if self.kind == "weight":
            outputs = torch.where(rare[:, :3], F.linear(x, self.first.weight * 2), outputs)
        elif self.kind == "other layer":
            outputs = torch.where(rare[:, :3], self.tied(x), outputs)
        return outputs


@pytest.mark.parametrize(
    "kind", ["token", "detached", "buffer", "in place", "rare rows", "weight", "other layer", "none"]
)
def test_sharing_is_declined_where_a_parameter_acts_on_rare_samples(kind):
    inputs = torch.randn(11, 80, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    inputs[5:, :4] = 100  # not among the first samples
    task = Task(Rare(kind).double(), {"test": Samples(inputs, torch.arange(11) % 3)})
    basis = torch.stack([task.theta, -0.3 * task.theta + 0.1])
    buffers = torch.stack([task.buffers, -task.buffers])
    found = evaluate(task, basis, [[0.3, 0.9], [0.0, 1.0]], buffers=buffers)["loss"]
    for row, loss in zip(([0.3, 0.9], [0.0, 1.0]), found, strict=True):
        model = Rare(kind).double()
        nn.utils.vector_to_parameters(row[0] * basis[0] + row[1] * basis[1], model.parameters())
        model.statistic = row[0] * buffers[0] + row[1] * buffers[1]
        torch.testing.assert_close(loss, F.cross_entropy(model(inputs), task.split("test").targets).detach())


def test_sharing_is_declined_behind_statistics_that_differ_between_models():
    model = nn.Sequential(nn.BatchNorm1d(80, affine=False), nn.Linear(80, 3)).double()
    task = _task(model)
    basis, inputs = thetas(task, 2), task.split("test").inputs
    buffers = torch.stack([task.buffers, torch.cat([torch.full((80,), 2.0), torch.full((80,), 0.25)]).double()])
    found = evaluate(task, basis, [[1.0, 0.0], [0.0, 1.0]], buffers=buffers, statistics="averaged")["loss"]
    for place in range(2):
        mean, variance = buffers[place].view(2, 80)
        views = task.layout.named(basis[place])
        outputs = F.linear((inputs - mean) / (variance + 1e-5).sqrt(), views["1.weight"], views["1.bias"])
        torch.testing.assert_close(found[place], F.cross_entropy(outputs, task.split("test").targets))


def test_sharing_is_declined_where_it_does_not_pay():
    task = _task(Preprocessed())
    basis = thetas(task, 11)
    assert blocks_and_sharing(task.flat(basis), basis, task.split("test"))[1] is None


def test_sharing_is_declined_for_frozen_and_hooked_layers():
    frozen = nn.Sequential(nn.Linear(80, 5), nn.Linear(5, 3))
    frozen[0].bias.requires_grad_(False)
    hooked = nn.Sequential(nn.Linear(80, 3), nn.Tanh())
    hooked[0].register_forward_hook(lambda *arguments: arguments[2] ** 2)
    for model in (frozen, hooked):
        task = _task(model)
        basis = thetas(task, 2)
        assert blocks_and_sharing(task.flat(basis), basis, task.split("test"))[1] is None


def test_models_without_a_finite_loss_are_evaluated_as_such():
    task = Task(nn.Linear(3, 2), {"test": Samples(torch.randn(5, 3), torch.randint(0, 2, (5,)))})
    broken = torch.full_like(task.theta, torch.nan)
    assert evaluate(task, torch.stack([broken, task.theta]), torch.eye(2))["loss"][0].isnan()


@pytest.mark.parametrize("kind", ["between", "around", "anywhere"])
def test_steps_from_a_model_have_the_values_of_single_models(kind, monkeypatch):
    task = _task(_cnn(), (3, 6, 7))
    basis = thetas(task, 3)
    rows = torch.randn(6, 3, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    rows[1, 2] = rows[0, 2]  # shares the start of the row before
    rows[5, 1] = 0
    if kind == "between":
        rows[:, 0] = 1 - rows[:, 1:].sum(1)
    elif kind == "around":
        rows[:, 0] = 1
    assert first_layer.is_between(rows[0].tolist()) == (kind == "between")
    assert first_layer.is_around(rows[0].tolist()) == (kind == "around")
    shared, plain = _both(task, basis, rows, monkeypatch)
    torch.testing.assert_close(shared, plain, rtol=1e-11, atol=0)


def test_a_spoilt_model_does_not_spoil_convolutions_without_it():
    task = _task(_cnn(), (3, 6, 7))
    basis = thetas(task, 3)
    basis[0] = torch.nan
    found = evaluate(task, basis, [[0.0, 0.25, 0.75], [0.2, 0.3, 0.5]])["loss"]
    assert found[1].isnan()
    assert torch.isfinite(found[0])


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("scale", [1, 30, 1000])
def test_points_beside_a_diverged_model_are_as_exact_as_the_layer_itself(place, scale):
    """The terms of such a point are a thousand times its weights; the first is O_0, whatever its coefficient."""
    task = _task(nn.Sequential(nn.Linear(768, 32), nn.Tanh(), nn.Linear(32, 3)), (768,), torch.float32)
    basis, shares = thetas(task, 3, spread=0.02).float(), torch.full((3, 1), 1.0, dtype=torch.float64)
    basis[place] *= scale
    shares[place] = 0.01 / scale
    others = [row for row in range(3) if row != place]
    rows = []
    for one in (0.3, -0.4, 1.5):
        shares[others[0]], shares[others[1]] = one, 1 - one - shares[place]
        rows.append(shares[:, 0].clone())
    points = torch.stack(rows)
    samples, model = task.split("test"), deepcopy(task.model).double()
    truth = []
    for theta in points @ basis.double():
        nn.utils.vector_to_parameters(theta, model.parameters())
        truth.append(F.cross_entropy(model(samples.inputs.double()), samples.targets))
    found = evaluate(task, basis, points)["loss"]
    torch.testing.assert_close(found.double(), torch.stack(truth).detach(), rtol=2e-7, atol=0)
