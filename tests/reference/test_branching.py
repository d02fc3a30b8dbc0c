"""Sweeps of models that branch on values or write to their parameters, against the module itself at every point."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from reference.registry import agree, reference
from torch import Tensor, nn

import landscape


class Two(nn.Module):
    """Two dense layers with tanh between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(36, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.relu, self.tanh = nn.ReLU(), nn.Tanh()

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.tanh(self.first(x)))


class Activation(Two):
    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.last(self.relu(x) if self.first.weight.sum() > 0 else self.tanh(x))


class Skipping(Two):
    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.first(x))
        return self.last(self.relu(self.middle(x)) if float(self.middle.weight.mean()) > 0 else x)


class Clamped(Two):
    def forward(self, x: Tensor) -> Tensor:
        self.first.weight.data.clamp_(-0.15, 0.15)
        return super().forward(x)


class ClampedInto(Two):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            torch.clamp(self.first.weight, -0.15, 0.15, out=self.first.weight)
        return super().forward(x)


class Folded(nn.Module):
    """Skips a convolution and its normalisation where the mean weight is negative."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(n, 4, 3, padding=1) for n in (1, 4))
        self.norm, self.other, self.last = nn.BatchNorm2d(4), nn.BatchNorm2d(4), nn.Linear(144, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.norm(self.first(x.view(-1, 1, 6, 6))))
        x = torch.relu(self.other(self.second(x))) if self.second.weight.mean() > 0 else x
        return self.last(x.flatten(1))


def centred(kind: type[nn.Module]) -> nn.Module:
    """A model of small weights whose means have other signs in the models around it."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return kind().eval()


@pytest.mark.parametrize("kind", [Activation, Skipping, Clamped, ClampedInto, Folded])
@reference("landscape.evaluate", "landscape.surface", by="the module itself in float64, at every point")
def test_models_that_branch_or_write_to_their_parameters(kind):
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(150, 36, generator=draw), torch.randint(0, 3, (150,), generator=draw)
    model = centred(kind)
    task = landscape.make_task(copy.deepcopy(model), nn.CrossEntropyLoss(), (x, y))
    size = task.layout.size
    models = 0.2 * torch.randn(3, size, generator=draw) + torch.tensor([[0.02], [-0.02], [0.0]])
    sweep = landscape.plane(*models, points=5)

    def plain(theta: Tensor) -> float:
        own = copy.deepcopy(model).double()
        with torch.no_grad():
            nn.utils.vector_to_parameters(theta.double().clone(), own.parameters())
            return nn.functional.cross_entropy(own(x.double()), y).item()

    grid = np.stack(np.meshgrid(*sweep.coords.values(), indexing="ij"), -1).reshape(-1, 2)
    rows = torch.from_numpy(sweep.origin + grid @ sweep.axes)
    wanted = np.array([plain(row @ sweep.basis.double()) for row in rows])
    buffers = task.buffers.expand(len(sweep.basis), -1) if len(task.buffers) else None
    found = landscape.evaluate(task, sweep.basis, rows, buffers=buffers, metrics=("loss",))["loss"]
    agree("landscape.evaluate", found.numpy(), wanted, relative=1e-5)
    if buffers is None:
        found = landscape.surface(task, sweep).loss.transpose(*sweep.coords).values.ravel()
        agree("landscape.surface", found, wanted, relative=1e-5)


class Flipped(Two):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(-x if x.mean() > 0 else x)


def test_a_model_that_branches_on_its_batch_is_refused():
    x = torch.randn(90, 36, generator=torch.Generator().manual_seed(0)) + 0.3
    with pytest.raises(ValueError, match="depends on others of its batch"):
        landscape.make_task(Flipped(), nn.CrossEntropyLoss(), (x, torch.arange(90) % 3)).trial()


class Assigned(Two):
    def forward(self, x: Tensor) -> Tensor:
        self.first.weight.data = self.first.weight.data.clamp(-0.15, 0.15)
        return super().forward(x)


def test_a_model_that_replaces_a_parameter_is_refused():
    x = torch.randn(90, 36, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match=r"replaces its parameter .first\.weight."):
        landscape.make_task(Assigned(), nn.CrossEntropyLoss(), (x, torch.arange(90) % 3)).trial()
