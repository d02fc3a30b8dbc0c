"""What the benchmark of planes measures: the case, and every contestant on it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from landscape import models
from landscape.geometry import planes
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.sweep.evaluate import evaluate
from landscape.sweep.grid import Sweep
from landscape.sweep.precision import has_bfloat16

SHAPES = {"cnn_fmnist": (1, 28, 28), "cnn_cifar10": (3, 32, 32), "mlp": (1, 28, 28), "simple_cnn": (3, 32, 32)}


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
        model = models.build_model(name, SHAPES[name], 10, seed=0)
        samples = Samples(torch.randn(count, *SHAPES[name]), torch.randint(10, (count,)))
        task = Task(model, {"test": samples.to(device=torch.device(device))})
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


def contestants(case: Case) -> dict[str, Callable[[], np.ndarray]]:
    """By name, what computes the losses on the grid."""
    runs: dict[str, Callable[[], np.ndarray]] = {"ours": lambda: ours(case)}
    if has_bfloat16() or case.three.is_cuda:
        runs["ours, fast"] = lambda: ours(case, precision="fast")
    runs["classic"] = lambda: classic(case)
    if importlib.util.find_spec("loss_landscapes"):
        runs["loss-landscapes"] = lambda: package(case)
    return runs


def ours(case: Case, **options) -> np.ndarray:
    """Loss and error on the grid by this project."""
    found = evaluate(case.task, case.sweep.basis, case.sweep.coefficients, **options)
    return found["loss"].reshape(case.sweep.shape).numpy()


def classic(case: Case) -> np.ndarray:
    """Loss and error on the grid the usual way: set the weights of a point, loop over batches of 128, next point."""
    model, three, samples, coords = case.model, case.three, case.samples, case.sweep.coords
    shapes = [parameter.shape for parameter in model.parameters()]
    u = three[1] - three[0]
    v = (three[2] - three[0]) - (three[2] - three[0]) @ u / (u @ u) * u
    u, v = u / u.norm(), v / v.norm()
    found = np.zeros(case.sweep.shape)
    model.eval()
    with torch.no_grad():
        for i, alpha in enumerate(coords["alpha"]):
            for j, beta in enumerate(coords["beta"]):
                theta = three[0] + float(alpha) * u + float(beta) * v
                parts = theta.split([shape.numel() for shape in shapes])
                for parameter, part, shape in zip(model.parameters(), parts, shapes, strict=True):
                    parameter.data.copy_(part.view(shape))
                total, right = 0.0, 0
                for start in range(0, len(samples), 128):
                    batch = samples[start : start + 128]
                    outputs = model(batch.inputs)
                    total += F.cross_entropy(outputs, batch.targets, reduction="sum").item()
                    right += (outputs.argmax(1) == batch.targets).sum().item()
                found[i, j] = total / len(samples)
    return found


def package(case: Case) -> np.ndarray:
    """Loss on a random plane of as many points by loss-landscapes, all samples as one batch as its examples do."""
    import loss_landscapes
    import loss_landscapes.metrics

    metric = loss_landscapes.metrics.Loss(nn.CrossEntropyLoss(), case.samples.inputs, case.samples.targets)
    with torch.no_grad():
        return loss_landscapes.random_plane(case.model, metric, distance=1, steps=case.points)
