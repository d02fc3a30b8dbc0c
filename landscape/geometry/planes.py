"""The plane through three models, and projections of other models onto it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.model.vectors import takes_models
from landscape.sweep.grid import Sweep, axis, make_mark, stack_models

COLLINEAR = 1e-8
"""Height over base of the triangle below which three models count as collinear."""

ROUNDING = 100
"""Units in the last place of the longest model: of a lower triangle, points away from the line cannot be computed."""


@takes_models("w1", "w2", "w3")
def plane(
    w1: Tensor,
    w2: Tensor,
    w3: Tensor,
    *,
    points: int | tuple[int, int] = 21,
    margin: float | tuple[float, float] = 0.3,
    box: str = "marks",
    labels: Sequence[str] = ("1", "2", "3"),
    buffers: Tensor | None = None,
    seed: int = 0,
) -> Sweep:
    """The models w1 + alpha u/|u| + beta v/|v| on a grid around three models, marked at these and at their mean.

        sweep = landscape.plane(a, b, c, points=21)
        landscape.surface(task, sweep).plot()

    u = w2 - w1, v = (w3 - w1) - <w3 - w1, u> u / |u|^2. Distances on the plane are distances between parameters:
    w1 = (0, 0), w2 = (|u|, 0), w3 = (<w3 - w1, u>/|u|, |v|). The paper prints u/|u|^2 and v/|v|^2, which would not be
    isometric; unit vectors are used. For models that are collinear up to rounding (`ROUNDING`), v is a random direction
    orthogonal to u, as long as u.

    Source: IMA paper, section 3.2.

    Args:
        w1, w2, w3: Models, shape (d,).
        points: Grid size, (alpha, beta) or one number for both.
        margin: Distance between box and edge of the grid on each side, as a fraction of its width, (alpha, beta) or
            one number for both.
        box: "marks" for the models' bounding box, or "symmetric" for the least square around their mean that holds
            them: the mean in the middle, one step in both directions where points are equal.
        labels: Names of the marks; the fourth is "mean".
        buffers: Floating buffers of the models, shape (3, b).
        seed: Of the random direction for collinear models.

    Raises:
        ValueError: If the models differ in length, w1 and w2 are equal, or there is no such box.
    """
    if box not in ("marks", "symmetric"):
        raise ValueError(f"box is {box!r}; a plane takes 'marks' or 'symmetric'.")
    models = stack_models([w1, w2, w3])
    u, third = models[1].double() - models[0].double(), models[2].double() - models[0].double()
    base = u.norm().item()
    if base == 0:
        raise ValueError(f"w1 and w2 are equal ({labels[0]}, {labels[1]}); give two different models first.")
    along = (third @ u).item() / base
    across = third - along / base * u
    height = across.norm().item()
    corners = np.array([(0, 0), (base, 0), (along, height)])
    rounding = ROUNDING * torch.finfo(models.dtype).eps * models.norm(dim=1).max().item()
    if flat := height < max(COLLINEAR * base, rounding):
        models = torch.cat([models, orthogonal(u, seed).to(models)[None]])
        axes = np.array([[-1 / base, 1 / base, 0, 0], [0, 0, 0, 1]])
        buffers = None if buffers is None else torch.cat([buffers, torch.zeros_like(buffers[:1])])
        low, high = np.array([min(0, along), -base / 2]), np.array([max(base, along), base / 2])
    else:
        slant = along / base / height
        axes = np.array([[-1 / base, 1 / base, 0], [slant - 1 / height, -slant, 1 / height]])
        low, high = corners.min(0), corners.max(0)
    if box == "symmetric":
        middle = corners.mean(0)
        half = np.abs(corners - middle).max()
        low, high = middle - half, middle + half
    low, high = low - np.array(margin) * (high - low), high + np.array(margin) * (high - low)
    size = (points, points) if isinstance(points, int) else points
    choices = np.eye(3, len(models))
    where = [*zip(labels, corners, choices, strict=True), ("mean", corners.mean(0), choices.mean(0))]
    return Sweep(
        models,
        origin=choices[0],
        axes=axes,
        coords={name: axis(low[i], high[i], size[i]) for i, name in enumerate(("alpha", "beta"))},
        marks=tuple(make_mark(*mark) for mark in where),
        buffers=buffers,
        attrs={"analysis": "plane", "source": "IMA paper, section 3.2", "isometric": 1, "collinear": int(flat)},
    )


@takes_models("models")
def project(models: Sequence[Tensor] | Tensor, sweep: Sweep, *, labels: Sequence[str] | None = None) -> xr.Dataset:
    """Projection of models onto a sweep: coordinates of the nearest point, and the distance to it.

    Args:
        models: Shape (m, d).
        sweep: A plane, or any sweep with linearly independent axes.
        labels: Names of the models; by default 1, 2, .. m.

    Returns:
        Dataset with mark_alpha (mark,), mark_beta (mark,) (or what the dimensions are called) and
        distance (mark,), the distance out of the plane.

    Raises:
        ValueError: If the models are of another length than the sweep's.
    """
    if any(model.shape != sweep.basis[0].shape for model in models):
        raise ValueError(f"models have {len(models[0])} entries, the sweep has {sweep.basis.shape[1]}.")
    origin, *axes = (combine64(sweep.basis, row) for row in (sweep.origin, *sweep.axes))
    gram = np.array([[(a @ b).item() for b in axes] for a in axes])
    projections, distances = [], []
    for model in models:
        away = model.detach().double() - origin
        coordinates = np.linalg.solve(gram, np.array([(away @ direction).item() for direction in axes]))
        for coordinate, direction in zip(coordinates, axes, strict=True):
            away.sub_(direction, alpha=coordinate)
        projections.append(coordinates)
        distances.append(away.norm().item())
    names = [str(index + 1) for index in range(len(models))] if labels is None else list(labels)
    columns = np.array(projections).reshape(len(names), len(axes)).T
    variables = {f"mark_{name}": ("mark", column) for name, column in zip(sweep.coords, columns, strict=True)}
    variables["distance"] = ("mark", np.array(distances))
    ds = xr.Dataset(variables, coords={"mark": names}, attrs={"analysis": "project"})
    ds.distance.attrs.update(long_name="distance out of the plane", units="1")
    return ds


def combine64(basis: Tensor, row: np.ndarray) -> Tensor:
    """The combination row (n,) of models (n, d), summed in float64."""
    total = torch.zeros(basis.shape[1], dtype=torch.float64, device=basis.device)
    for model, coefficient in zip(basis, row, strict=True):
        total.add_(model.detach().double(), alpha=float(coefficient))
    return total


def orthogonal(u: Tensor, seed: int) -> Tensor:
    """Random unit direction orthogonal to u (d,)."""
    direction = torch.randn(len(u), generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(u.device)
    for _ in range(2):  # the second pass removes rounding errors
        direction -= (direction @ u) / (u @ u) * u
    return direction / direction.norm()
