"""Tasks whose answers are known, and tiny real ones; small enough for a test, unequal in every size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from landscape.model.model import with_buffers
from landscape.model.samples import Samples
from landscape.model.task import Task


@dataclass(frozen=True)
class Quadratic:
    """A task whose loss is 0.5 (theta - centre)^T matrix (theta - centre), in float64.

    eigenvalues (d,) fall; eigenvectors (d, d) are columns in the same order.
    """

    task: Task
    matrix: Tensor
    centre: Tensor
    eigenvalues: Tensor
    eigenvectors: Tensor

    def loss(self, theta: Tensor) -> Tensor:
        """Loss () at theta (d,)."""
        return 0.5 * (theta - self.centre) @ self.matrix @ (theta - self.centre)

    def gradient(self, theta: Tensor) -> Tensor:
        """Gradient (d,) at theta (d,)."""
        return self.matrix @ (theta - self.centre)


def quadratic(
    d: int = 5,
    *,
    eigenvalues: Sequence[float] | None = None,
    samples: int = 0,
    seed: int = 0,
) -> Quadratic:
    """Linear regression built so that its mean loss has the given eigenvalues (default d, d - 1, .. 1).

    Inputs are (n, d) with X^T X / n = matrix, targets X centre, loss half the squared error; samples 0 is
    d + 12, else it must be at least d.
    The splits train and test hold the same samples.
    """
    generator, samples = torch.Generator().manual_seed(seed), samples or d + 12
    values = torch.arange(d, 0, -1) if eigenvalues is None else torch.tensor(eigenvalues)
    values = values.double().sort(descending=True).values
    vectors = _orthogonal(d, d, generator)
    inputs = samples**0.5 * _orthogonal(samples, d, generator) @ (values.sqrt()[:, None] * vectors.T)
    centre = torch.randn(d, generator=generator, dtype=torch.float64)
    held = Samples(inputs, inputs @ centre)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.Linear(d, 1, bias=False, dtype=torch.float64)
    task = Task(model, {"train": held, "test": held}, loss=half_squared_error, metrics={})
    return Quadratic(task, vectors @ torch.diag(values) @ vectors.T, centre, values, vectors)


def half_squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Half the squared distance of outputs (n, 1) to targets (n,)."""
    return 0.5 * (outputs.flatten() - targets).square()


def mlp_task(*, dtype: torch.dtype = torch.float64, seed: int = 0) -> Task:
    """Classes from vectors: 4 features, 3 classes, tanh MLP, d = 43, 23 training and 11 test samples."""
    return _task(
        lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)),
        (4,),
        3,
        dtype,
        seed,
    )


def cnn_task(*, dtype: torch.dtype = torch.float64, seed: int = 0, norm: bool = False) -> Task:
    """Classes from 2-channel 6 x 7 images: one convolution, optional BatchNorm, ReLU, pooling, 3 classes."""

    def model() -> nn.Module:
        middle: list[nn.Module] = [nn.BatchNorm2d(4)] if norm else []
        pool = [nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), *middle, *pool, nn.Linear(36, 3))

    return _task(model, (2, 6, 7), 3, dtype, seed)


def thetas(task: Task, count: int, *, spread: float = 0.3, seed: int = 0) -> Tensor:
    """`count` models (count, d) around the task's own parameters, with its buffers."""
    generator = torch.Generator().manual_seed(seed)
    centre = task.theta
    models = centre + spread * torch.randn(count, centre.numel(), generator=generator, dtype=centre.dtype)
    return with_buffers(models, task.buffers.expand(count, -1))


def _orthogonal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    return torch.linalg.qr(torch.randn(rows, columns, generator=generator, dtype=torch.float64)).Q


def _task(build: Callable[[], nn.Module], shape: tuple[int, ...], classes: int, dtype: torch.dtype, seed: int) -> Task:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = build().to(dtype)
    generator = torch.Generator().manual_seed(seed)
    splits = {
        split: Samples(
            torch.randn(count, *shape, generator=generator, dtype=dtype),
            torch.randint(classes, (count,), generator=generator),
        )
        for split, count in {"train": 23, "test": 11}.items()
    }
    return Task(model, splits)
