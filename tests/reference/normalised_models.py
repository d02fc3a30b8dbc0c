"""Models whose running statistics are far from the untrained ones, and their losses, one sample after the other."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from reference.registry import agree
from torch import Tensor, nn
from torch.func import functional_call

import landscape
from landscape.model.samples import Samples
from landscape.sweep.grid import Sweep


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    layers = (nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Tanh(), nn.Flatten(), nn.Linear(8, 3), nn.BatchNorm1d(3))
    return nn.Sequential(*layers).double()


def trained(seed: int) -> nn.Module:
    """A network with running statistics that no training from this start would give."""
    module, generator = network(seed), torch.Generator().manual_seed(seed)
    for name, buffer in module.named_buffers():
        if name.endswith("running_mean"):
            buffer.copy_(2 * torch.randn(buffer.shape, generator=generator))
        if name.endswith("running_var"):
            buffer.copy_(0.1 + 3 * torch.rand(buffer.shape, generator=generator))
    return module.eval()


def data(count: int, seed: int) -> Samples:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 1, 4, 4, generator=generator, dtype=torch.float64)
    return Samples(inputs, torch.randint(3, (count,), generator=generator))


TASK = landscape.Task(network(0), {"train": data(23, 1), "test": data(31, 2)})
A, B, C = trained(1), trained(2), trained(3)
THETA, OTHER = TASK.layout.theta(A), TASK.layout.theta(B)


def carried(module: nn.Module) -> Tensor:
    return landscape.Model(TASK.layout.theta(module), TASK.layout.buffer_vector(module))


FORMS = {"module": lambda module: module, "state dict": lambda module: module.state_dict(), "model": carried}


def loss(module: nn.Module, split: str = "test") -> float:
    samples = TASK.split(split)
    with torch.no_grad():
        outputs = torch.cat([module(samples.inputs[row : row + 1]) for row in range(len(samples))])
    return float(F.cross_entropy(outputs, samples.targets))


def at(theta: Tensor, like: nn.Module | None) -> nn.Module:
    """A module at theta (d,), with the statistics of another one or, without it, those of all training samples."""
    module = copy.deepcopy(like or A)
    with torch.no_grad():
        for name, part in TASK.layout.named(theta).items():
            module.get_parameter(name).copy_(part)
        if like is None:
            for layer in module:
                if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
                    layer.momentum = 1.0
            module.train()(TASK.split("train").inputs)
    return module.eval()


def dense_hessian(module: nn.Module, split: str = "train") -> Tensor:
    samples, state = TASK.split(split), dict(module.named_buffers())

    def mean(theta: Tensor) -> Tensor:
        outputs = functional_call(module, {**state, **TASK.layout.named(theta)}, (samples.inputs,))
        return F.cross_entropy(outputs, samples.targets)

    return torch.autograd.functional.hessian(mean, TASK.layout.theta(module))


@cache
def hessian() -> np.ndarray:
    return dense_hessian(A).numpy()


def by_magnitude(matrix: np.ndarray, k: int) -> np.ndarray:
    values = np.linalg.eigvalsh(matrix)
    return values[np.abs(values).argsort()[::-1][:k]]


def grid(sweep: Sweep, like: nn.Module | None) -> np.ndarray:
    rows = torch.from_numpy(sweep.coefficients)
    return np.array([loss(at(row @ sweep.basis, like)) for row in rows]).reshape(sweep.shape)


def slices(name, sweep):
    """Around one model, which keeps its statistics at every point."""
    ds = landscape.surface(TASK, sweep)
    assert ds.attrs["statistics"] == "own"
    agree(name, ds.loss, grid(sweep, A), relative=1e-9)
    agree(name, ds.mark_loss, [loss(A)], relative=1e-9)


def between(name, sweep, modules):
    """Between models, at points with recomputed statistics; marks that are models keep their own, and it is said."""
    ds = landscape.surface(TASK, sweep, metrics=("loss",))
    assert (ds.attrs["statistics"], ds.attrs["mark_statistics"]) == ("recomputed", "own")
    agree(name, ds.loss, grid(sweep, None), relative=1e-9)
    agree(name, ds.mark_loss[: len(modules)], [loss(module) for module in modules], relative=1e-9)


def marked(name, ds, modules):
    assert (ds.attrs["statistics"], ds.attrs["mark_statistics"]) == ("recomputed", "own")
    agree(name, ds.mark_loss[: len(modules)], [loss(module) for module in modules], relative=1e-9)
    place = {"alpha": 2, "beta": 5}
    exact = landscape.plane(A, B, C, points=17, task=TASK)
    row = torch.from_numpy(exact.coefficients.reshape(*exact.shape, -1)[place["alpha"], place["beta"]])
    agree(name, ds.loss.isel(place), loss(at(row @ exact.basis, None)), relative=0.2)


def logits(module: nn.Module, theta: Tensor) -> Tensor:
    state = dict(module.named_buffers())
    return functional_call(module, {**state, **TASK.layout.named(theta)}, (TASK.split("train").inputs,))
