"""Lines and planes along directions from one model: filter-normalised random directions, or any vector."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from landscape.model.task import Task
from landscape.model.vectors import takes_models
from landscape.sweep.grid import Sweep, axis, make_mark, stack_models


def random_direction(task: Task, theta: Tensor, generator: torch.Generator, *, vectors: bool = False) -> Tensor:
    """Gaussian direction (d,) whose every filter has the norm of the same filter of theta.

    d_i <- d_i |theta_i| / |d_i| for filter i, the slice i of a parameter along its first dimension (a row of a
    linear layer). One-dimensional parameters (biases, normalisation) are 0.

    Source: Li et al. 2018, section 4; leaving biases out follows their code (`ignore="biasbn"`).

    Args:
        theta: Model, shape (d,).
        generator: Source of randomness; must be on the CPU for the same direction on every device.
        vectors: Also move one-dimensional parameters, each normalised as one filter.
    """
    direction = torch.randn(theta.shape, generator=generator, device=generator.device, dtype=theta.dtype).to(theta)
    tensors = task.layout.named(theta.detach())
    for name, tensor in task.layout.named(direction).items():
        if tensor.ndim < 2 and not vectors:
            tensor.zero_()
            continue
        rows = tensor.shape[0] if tensor.ndim > 1 else 1
        filters, own_filters = tensor.view(rows, -1), tensors[name].reshape(rows, -1)
        filters.mul_(own_filters.norm(dim=1, keepdim=True) / filters.norm(dim=1, keepdim=True).clamp_min(1e-30))
    return direction


@takes_models("theta")
def random_plane(
    task: Task,
    theta: Tensor,
    *,
    seed: int = 0,
    points: int | tuple[int, int] = 21,
    radius: float = 1.0,
    label: str = "model",
    buffers: Tensor | None = None,
) -> Sweep:
    """The models theta + alpha d1 + beta d2 along two filter-normalised random directions.

        sweep = landscape.random_plane(task, model, points=11, radius=0.5)
        landscape.surface(task, sweep).plot()

    Coordinates are in filter norms: at alpha = 1 every filter has moved by its own norm.

    Source: Li et al. 2018, section 4.

    Args:
        task: Model, loss and samples.
        label: Name of the model on the surface.
        theta: Model, shape (d,).
        seed: Of the directions.
        points: Grid size, (alpha, beta) or one number for both.
        radius: Largest coordinate.
        buffers: Floating buffers of the model, shape (b,), the same at all points.
    """
    options = {"seed": seed, "points": points, "radius": radius, "label": label, "buffers": buffers}
    sweep = random_directions(task, theta, count=2, **options)  # type: ignore[arg-type]  # a table of options
    return replace(sweep, attrs={**sweep.attrs, "analysis": "random_plane"})


DIRECTIONS = ("alpha", "beta", "gamma", "delta")
"""Names of the coordinates along random directions, in their order."""


@takes_models("theta")
def random_directions(
    task: Task,
    theta: Tensor,
    *,
    count: int = 3,
    seed: int = 0,
    points: int | tuple[int, ...] = 9,
    radius: float = 1.0,
    label: str = "model",
    buffers: Tensor | None = None,
) -> Sweep:
    """The models theta + alpha d1 + beta d2 + .. along one to four filter-normalised random directions.

    Two directions often hide minima and passes that three have. Fewer directions are the first ones of more.

    Source: Li et al. 2018, section 4, for two.

    Args:
        task: Model, loss and samples.
        theta: Model, shape (d,).
        count: Number of directions, 1 to 4; the grid has points to this power.
        seed: Of the directions.
        points: Grid size per direction, or one number for all.
        radius: Largest coordinate, in filter norms.
        label: Name of the model on the surface.
        buffers: Floating buffers of the model, shape (b,), the same at all points.

    Raises:
        ValueError: If there are not 1 to 4 directions, or not as many sizes.
    """
    size = (points,) * count if isinstance(points, int) else tuple(points)
    if not 1 <= count <= len(DIRECTIONS) or len(size) != count:
        raise ValueError(
            f"count is {count} with {len(size)} sizes; give 1 to {len(DIRECTIONS)} directions, each with a size."
        )
    generator = torch.Generator().manual_seed(seed)
    rows = [theta, *(random_direction(task, theta, generator) for _ in range(count))]
    identity = np.eye(count + 1)
    return Sweep(
        stack_models(rows),
        origin=identity[0],
        axes=identity[1:],
        coords={name: axis(-radius, radius, number) for name, number in zip(DIRECTIONS, size, strict=False)},
        marks=(make_mark(label, (0,) * count, identity[0]),),
        buffers=_padded(buffers, count + 1),
        attrs={
            "analysis": "random_directions",
            "source": "Li et al. 2018, section 4",
            "unit": "filter norms",
            "seed": seed,
        },
    )


@takes_models("theta", directions=("direction",))
def slice_along(
    theta: Tensor,
    direction: Tensor,
    *,
    points: int = 41,
    radius: float = 0.5,
    label: str = "model",
    buffers: Tensor | None = None,
) -> Sweep:
    """The models theta + t direction/|direction| for t from -radius to radius: t is a distance between parameters.

    With the top Hessian eigenvector this is the right panel of FedLAW figure 4 (its range is not stated; the default
    radius is a choice of ours).

    Args:
        label: Name of the model on the surface.
        theta, direction: Shape (d,).
        points: Evaluations; an odd number puts the model on the grid.
        radius: Largest distance.
        buffers: Floating buffers of the model, shape (b,), the same at all points.

    Raises:
        ValueError: If the direction is 0 or has another length than theta.
    """
    length = direction.double().norm().item()
    if length == 0:
        raise ValueError("the direction is 0 everywhere; a slice needs a direction other than 0.")
    return Sweep(
        stack_models([theta, direction.to(theta)]),
        origin=np.array([1.0, 0.0]),
        axes=np.array([[0.0, 1 / length]]),
        coords={"t": axis(-radius, radius, points)},
        marks=(make_mark(label, (0,), (1, 0)),),
        buffers=_padded(buffers, 2),
        attrs={"analysis": "slice_along", "source": "FedLAW paper, figure 4", "isometric": 1},
    )


def _padded(buffers: Tensor | None, rows: int) -> Tensor | None:
    """Buffers (rows, b) of a model and of directions that do not move them."""
    return None if buffers is None else torch.stack([buffers, *[torch.zeros_like(buffers)] * (rows - 1)])
