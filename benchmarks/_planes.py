"""What the benchmark of planes measures: the case, and every contestant on it."""

from __future__ import annotations

import copy
import importlib.util
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from landscape import models
from landscape.geometry import planes
from landscape.model.binary_losses import binary_cross_entropy, binary_error
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.sweep.evaluate import evaluate
from landscape.sweep.grid import Sweep
from landscape.sweep.precision import has_bfloat16

SHAPES: dict[str, tuple[int, ...]] = {
    "cnn_fmnist": (1, 28, 28),
    "cnn_cifar10": (3, 32, 32),
    "resnet8": (3, 32, 32),
    "resnet20": (3, 32, 32),
    "resnet18_gn": (3, 32, 32),
    "vgg11_gn": (3, 32, 32),
    "lenet5": (1, 28, 28),
    "mlp": (1, 28, 28),
    "din": (56,),
    "simple_cnn": (3, 32, 32),
    "transformer": (3, 32, 32),
}
"""Shape of one input, by model."""

SHARE = {"resnet8": 0.25, "resnet20": 0.1, "resnet18_gn": 0.02, "vgg11_gn": 0.06, "din": 0.25, "transformer": 0.1}
"""Part of the samples that slow models are measured on, so that all take about as long."""

BATCH = 128
"""Samples per forward pass of the loops."""

LOOPS = ("classic", "expert", "compiled")


class Transformer(nn.Module):
    """Four layers of width 192 over the 64 patches of an image, of `nn.Linear` as most code of transformers is."""

    WIDTH, HEADS, LAYERS, PATCH = 192, 3, 4, 4

    def __init__(self) -> None:
        super().__init__()
        width = self.WIDTH
        self.embed, self.head = nn.Conv2d(3, width, self.PATCH, self.PATCH), nn.Linear(width, 10)
        self.places = nn.Parameter(0.02 * torch.randn((32 // self.PATCH) ** 2, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * self.LAYERS))
        self.attention = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(self.LAYERS))
        self.joined = nn.ModuleList(nn.Linear(width, width) for _ in range(self.LAYERS))
        self.wide = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(self.LAYERS))
        self.narrow = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(self.LAYERS))

    def forward(self, images: Tensor) -> Tensor:
        """Outputs (n, 10) of images (n, 3, 32, 32)."""
        tokens = self.embed(images).flatten(2).transpose(1, 2) + self.places
        for layer in range(self.LAYERS):
            parts = self.attention[layer](self.norms[2 * layer](tokens)).unflatten(2, (3, self.HEADS, -1))
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
            tokens = tokens + self.joined[layer](mixed)
            tokens = tokens + self.narrow[layer](F.gelu(self.wide[layer](self.norms[2 * layer + 1](tokens))))
        return self.head(tokens.mean(1))


@dataclass(frozen=True)
class Case:
    """A plane through three models, on random images: the values do not change the work."""

    name: str
    points: int
    model: nn.Module
    samples: Samples
    task: Task
    three: Tensor
    sweep: Sweep

    @classmethod
    def of(cls, name: str, points: int, count: int, device: str = "cpu") -> Case:
        """The case of a model by its name, always the same."""
        torch.manual_seed(0)
        binary = name == "din"
        own = name == "transformer"
        model = Transformer() if own else models.build_model(name, SHAPES[name], 2 if binary else 10, seed=0)
        inputs = torch.randint(3, (count, *SHAPES[name])) if binary else torch.randn(count, *SHAPES[name])
        samples = Samples(inputs, torch.randint(2 if binary else 10, (count,)))
        losses = {"loss": binary_cross_entropy, "metrics": {"error": binary_error}} if binary else {}
        task = Task(model, {"test": samples.to(device=torch.device(device))}, **losses)
        three = task.theta + 0.01 * torch.randn(3, task.layout.size)
        three = three.to(device)
        sweep = planes.plane(*three, points=points)
        return cls(name, points, model.to(device), task.split("test"), task, three, sweep)

    @property
    def flops(self) -> float:
        """Of the forward passes of all points and samples."""
        with FlopCounterMode(display=False) as counter:
            self.model(self.samples[:2].inputs)
        return counter.get_total_flops() / 2 * len(self.samples) * self.points**2


def contestants(case: Case, names: Sequence[str] = ()) -> dict[str, Callable[[], np.ndarray]]:
    """By name, what computes the losses on the grid; all, or those of these names that this machine can run."""
    makers: dict[str, Callable[[], Callable[[], np.ndarray]]] = {"ours": lambda: lambda: ours(case)}
    if has_bfloat16() or case.three.is_cuda:
        makers["ours, fast"] = lambda: lambda: ours(case, precision="fast")
    makers["classic"] = lambda: lambda: classic(case)
    if not case.three.is_cuda:
        makers["expert"] = lambda: lambda: expert(case)
        if has_compiler():
            makers["compiled"] = lambda: compiled(case)
    if importlib.util.find_spec("loss_landscapes") and case.name != "din":
        makers["loss-landscapes"] = lambda: lambda: package(case)
    return {name: make() for name, make in makers.items() if not names or name in names}


def has_compiler() -> bool:
    """Whether `torch.compile` finds what it needs: a C++ compiler."""
    return any(shutil.which(name) for name in (os.environ.get("CXX", "g++"), "clang++"))


def ours(case: Case, **options) -> np.ndarray:
    """Loss and error on the grid by this project."""
    found = evaluate(case.task, case.sweep.basis, case.sweep.coefficients, statistics="task", **options)
    return found["loss"].reshape(case.sweep.shape).numpy()


def classic(case: Case) -> np.ndarray:
    """Loss and error on the grid the usual way: set the weights of a point, loop over batches, next point."""
    return _loop(case, case.model, case.model, list(case.samples.blocks(BATCH)))


def expert(case: Case) -> np.ndarray:
    """The classic loop by somebody who knows torch: model and images in channels_last, batches cut beforehand."""
    model = copy.deepcopy(case.model).to(memory_format=torch.channels_last)
    return _loop(case, model, model, _batches(case))


def compiled(case: Case) -> Callable[[], np.ndarray]:
    """The expert loop with its model under `torch.compile`, compiled here and not when it is called."""
    model = copy.deepcopy(case.model).to(memory_format=torch.channels_last).eval()
    batches, forward = _batches(case), torch.compile(model, dynamic=False)
    with torch.no_grad():
        for batch in (batches[0], batches[-1]):
            forward(batch.inputs)
    return lambda: _loop(case, model, forward, batches)


def _batches(case: Case) -> list[Samples]:
    images = isinstance(case.samples.inputs, Tensor) and case.samples.inputs.ndim == 4
    inputs = case.samples.inputs.contiguous(memory_format=torch.channels_last) if images else case.samples.inputs
    return list(Samples(inputs, case.samples.targets).blocks(BATCH))


def _loop(case: Case, model: nn.Module, forward: Callable[..., Tensor], batches: list[Samples]) -> np.ndarray:
    """Losses on the grid; `model` has the weights that `forward` reads."""
    three, coords = case.three, case.sweep.coords
    shapes = [parameter.shape for parameter in model.parameters()]
    u = three[1] - three[0]
    v = (three[2] - three[0]) - (three[2] - three[0]) @ u / (u @ u) * u
    u, v = u / u.norm(), v / v.norm()
    losses = np.zeros(case.sweep.shape)
    model.eval()
    with torch.no_grad():
        for i, alpha in enumerate(coords["alpha"]):
            for j, beta in enumerate(coords["beta"]):
                theta = three[0] + float(alpha) * u + float(beta) * v
                parts = theta.split([shape.numel() for shape in shapes])
                for parameter, part, shape in zip(model.parameters(), parts, shapes, strict=True):
                    parameter.data.copy_(part.view(shape))
                total, wrong = 0.0, 0.0
                for batch in batches:
                    outputs = forward(batch.inputs)
                    total += case.task.loss(outputs, batch.targets).sum().item()
                    wrong += case.task.metrics["error"](outputs, batch.targets).sum().item()
                losses[i, j] = total / len(case.samples)
    return losses


def package(case: Case) -> np.ndarray:
    """Loss on a random plane of as many points by loss-landscapes, all samples as one batch as its examples do."""
    import loss_landscapes
    import loss_landscapes.metrics

    metric = loss_landscapes.metrics.Loss(nn.CrossEntropyLoss(), case.samples.inputs, case.samples.targets)
    with torch.no_grad():
        return loss_landscapes.random_plane(case.model, metric, distance=1, steps=case.points)
