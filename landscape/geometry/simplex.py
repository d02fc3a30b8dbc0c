"""Weighted averages of models: all of three on a triangle, random ones of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from landscape.model.vectors import takes_models
from landscape.sweep.grid import Sweep, make_mark, stack_models


@takes_models("models")
def simplex(
    models: Sequence[Tensor] | Tensor,
    *,
    step: float = 0.02,
    extend: float = 0.0,
    labels: Sequence[str] = ("1", "2", "3"),
    buffers: Tensor | None = None,
) -> Sweep:
    """All weighted averages alpha w1 + beta w2 + (1 - alpha - beta) w3 of three models on a barycentric grid.

    Grid cells outside the triangle stay NaN and are never evaluated. Marked at the models and at their plain mean.

    Source: FedLAW paper, figure 12; the step is a choice of ours.

    Args:
        models: Three models, shape (3, d).
        step: Grid step, one over a whole number.
        extend: How far below 0 weights may go; rounded down to whole steps.
        labels: Names of the marks; the fourth is "mean".
        buffers: Floating buffers of the models, shape (3, b).

    Raises:
        ValueError: If there are not three models, they differ in length, or the step does not divide 1.
    """
    basis = stack_models(list(models), 3)
    steps = round(1 / step) if 0 < step <= 1 else 0
    if steps == 0 or abs(steps * step - 1) > 1e-9:
        raise ValueError(f"step is {step}; it must be 1 over a whole number, such as 0.02.")
    if extend < 0:
        raise ValueError(f"extend is {extend}; it must be at least 0.")
    beyond = int(extend * steps + 1e-9)
    ticks = np.arange(-beyond, steps + 2 * beyond + 1)
    corners = np.eye(3)
    where = [*zip(labels, corners, strict=True), ("mean", corners.mean(0))]
    return Sweep(
        basis,
        origin=corners[2],
        axes=np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]]),
        coords={"alpha": ticks / steps, "beta": ticks / steps},
        marks=tuple(make_mark(name, weights[:2], weights) for name, weights in where),
        inside=ticks[:, None] + ticks[None] <= steps + beyond,
        buffers=buffers,
        attrs={"analysis": "simplex", "source": "FedLAW paper, figure 12"},
    )


def on_triangle(alpha: Any, beta: Any) -> tuple[Any, Any]:
    """Places (x, y) of weights: corners (0, 0), (1, 0) and (1/2, sqrt(3)/2) for the first, second and third model."""
    third = 1 - alpha - beta
    return beta + third / 2, third * 3**0.5 / 2


def points(models: Sequence[Tensor] | Tensor, count: int, seed: int) -> Tensor:
    """Coefficients (count, m) of random averages of m models, uniform on the simplex (Dirichlet(1)), float64."""
    generator = torch.Generator().manual_seed(seed)
    exponentials = -torch.rand(count, len(models), generator=generator, dtype=torch.float64).clamp_min(1e-300).log()
    return exponentials / exponentials.sum(1, keepdim=True)
