"""Sweeps in bfloat16 and the error that they state."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from landscape import models
from landscape.geometry.planes import plane
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.surfaces.surface import surface
from landscape.sweep import precision
from landscape.sweep.evaluate import evaluate
from landscape.sweep.precision import evenly_spaced, relative_difference, use_bfloat16

pytestmark = pytest.mark.seconds

needed = pytest.mark.skipif(not precision.has_bfloat16(), reason="needs a processor with products in bfloat16")

SHAPES = {"cnn_cifar10": (3, 16, 16), "cnn_fmnist": (1, 16, 16), "resnet8": (3, 8, 8)}


def _trained(name: str, *, steps: int = 12) -> tuple[Task, torch.Tensor]:
    """A task with noisy samples of ten patterns, and three models that were trained on parts of them."""
    generator = torch.Generator().manual_seed(0)
    patterns = torch.randn(10, *SHAPES[name], generator=generator)
    targets = torch.arange(60) % 10
    inputs = patterns[targets] + torch.randn(60, *SHAPES[name], generator=generator)
    options = {"norm": "group"} if name == "resnet8" else {}
    task = Task(models.build_model(name, SHAPES[name], 10, seed=0, **options), {"test": Samples(inputs, targets)})
    thetas = []
    for client in range(3):
        flat = task.flat(task.theta)
        part = task.split("test")[slice(20 * client, 20 * client + 20)]
        for _ in range(steps):
            flat.gradient(part)
            flat.theta.data -= 0.5 * flat.grad / max(1.0, float(flat.grad.norm()))
        thetas.append(flat.theta.detach().clone())
    return task, torch.stack(thetas)


@needed
@pytest.mark.parametrize("name", SHAPES)
def test_the_stated_error_of_a_fast_surface_is_small_and_that_of_its_points(name):
    task, thetas = _trained(name)
    sweep = plane(*thetas, points=(3, 5))
    exact, fast = surface(task, sweep), surface(task, sweep, precision="fast")
    assert "precision" not in exact.attrs
    assert fast.attrs["precision"] == "fast"
    assert fast.attrs["precision_points"] == precision.CHECKED
    assert 0 < fast.attrs["precision_error"] < 1e-3
    both = np.abs(fast.loss / exact.loss - 1)
    assert float(both.max()) < 1e-3
    every = np.concatenate([np.abs(fast.mark_loss / exact.mark_loss - 1), both.values.ravel()])
    chosen = evenly_spaced(np.arange(len(every)))
    assert fast.attrs["precision_error"] == pytest.approx(every[chosen].max(), rel=1e-6)
    assert float(exact.loss.min()) < 2.0  # the models have learned something


@needed
def test_a_fast_surface_goes_on_with_the_same_bits_and_not_from_an_exact_one():
    task, thetas = _trained("cnn_fmnist", steps=2)
    sweep = plane(*thetas, points=(3, 4))
    whole = surface(task, sweep, precision="fast")
    part = whole.copy(deep=True)
    part.loss.values[1:] = np.nan
    part.error.values[1:] = np.nan
    again = surface(task, sweep, precision="fast", known=part)
    assert np.array_equal(again.loss.values, whole.loss.values)
    assert again.attrs == whole.attrs
    with pytest.raises(ValueError, match="the known surface has precision = None, this sweep has fast"):
        surface(task, sweep, precision="fast", known=surface(task, sweep))
    two = evaluate(task, thetas, np.eye(3), precision="fast", workers=2)["loss"]
    assert torch.equal(two, evaluate(task, thetas, np.eye(3), precision="fast")["loss"])


@needed
def test_only_large_inner_layers_are_coarse():
    model = nn.Sequential(nn.Linear(6, 200), nn.ReLU(), nn.Linear(200, 100), nn.ReLU(), nn.Linear(100, 90), nn.Tanh())
    model.extend([nn.Linear(90, 20), nn.Linear(20, 500)])
    samples = Samples(torch.randn(3, 6), torch.arange(3))
    task = Task(model, {"test": samples})
    assert use_bfloat16(task.flat(task.theta), samples) == ["2.weight", "2.bias", "4.weight", "4.bias"]
    assert use_bfloat16(task.flat(task.theta.double()), samples) == []


class Reused(nn.Module):
    """Uses the weight of an inner layer again: by a function, or as the weight of the last layer."""

    def __init__(self, tied: bool) -> None:
        super().__init__()
        self.first, self.inner, self.last = nn.Linear(6, 100), nn.Linear(100, 100), nn.Linear(100, 100)
        self.tied = tied
        if tied:
            self.last.weight = self.inner.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.inner(self.first(x).relu()).relu()
        return self.last(inner if self.tied else F.linear(inner, self.inner.weight.t()))


@needed
@pytest.mark.parametrize("tied", [False, True])
def test_a_weight_with_a_second_use_in_float32_is_rounded_for_the_layer_alone(tied):
    torch.manual_seed(0)
    task = Task(Reused(tied), {"test": Samples(torch.randn(9, 6), torch.arange(9))})
    fast = evaluate(task, task.theta[None], [[1.0]], precision="fast")["loss"]
    exact = evaluate(task, task.theta[None], [[1.0]])["loss"]
    assert 0 < float((fast - exact).abs()) < 0.01 * float(exact)


def test_without_the_instructions_fast_is_exact_and_says_so(monkeypatch):
    monkeypatch.setattr(precision, "has_bfloat16", lambda: False)
    task, thetas = _trained("cnn_fmnist", steps=1)
    sweep = plane(*thetas, points=(2, 3))
    fast, exact = surface(task, sweep, precision="fast"), surface(task, sweep)
    assert np.array_equal(fast.loss.values, exact.loss.values)
    assert "precision_error" not in fast.attrs
    assert "no bfloat16" in fast.attrs["precision_note"]
    with pytest.raises(ValueError, match="precision is 'half'; accepted: exact, fast"):
        surface(task, sweep, precision="half")


@needed
def test_a_fast_surface_of_a_model_without_large_layers_states_no_error_and_says_so():
    task = Task(models.build_model("linear", (6,), 10, seed=0), {"test": Samples(torch.randn(9, 6), torch.arange(9))})
    sweep = plane(task.theta, task.theta + 1, task.theta - torch.arange(70), points=(2, 3))
    fast, exact = surface(task, sweep, precision="fast"), surface(task, sweep)
    assert np.array_equal(fast.loss.values, exact.loss.values)
    assert (fast.attrs["precision"], "precision_error" in fast.attrs) == ("fast", False)
    assert fast.attrs["precision_note"].startswith("no large inner layer in float32: ")


def test_the_difference_is_relative_and_passes_over_what_is_not_finite():
    exact = torch.tensor([2.0, -4.0, torch.nan, torch.inf, 0.0])
    assert relative_difference(torch.tensor([2.5, -4.4, 1.0, 1.0, 1.0]), exact) == pytest.approx(0.25)
    assert np.isnan(relative_difference(exact[2:], exact[2:]))
    assert evenly_spaced(np.arange(3, 6)).tolist() == [3, 4, 5]
    assert evenly_spaced(np.arange(0)).tolist() == []
