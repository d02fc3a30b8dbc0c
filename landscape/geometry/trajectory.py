"""The plane in which a trajectory of models moves most: its first two principal components."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from landscape.geometry.planes import combine64, orthogonal
from landscape.model.vectors import takes_models
from landscape.sweep.grid import Sweep, axis, make_mark, stack_models

BLOCK = 1 << 16
"""Parameters per model that are in memory in float64 at a time."""

FLAT = 1e-12
"""Second variance over first below which a trajectory counts as a straight line."""


@takes_models("models")
def principal_plane(
    models: Sequence[Tensor] | Tensor,
    *,
    points: int | tuple[int, int] = 21,
    margin: float = 0.3,
    labels: Sequence[str] | None = None,
    buffers: Tensor | None = None,
    within: np.ndarray | None = None,
    seed: int = 0,
) -> Sweep:
    """The models centre + alpha e1 + beta e2 on a grid around a trajectory, with every model marked at its projection.

    centre is the mean of the models, e1 and e2 are the unit directions of largest variance, from the Gram matrix
    (R, R) of the centred models; alpha grows from the first model to the last. The marks' values are those of the
    models themselves, which may lie off the plane: `landscape.project` returns their distances. For models on one line
    e2 is a random direction orthogonal to it.

    Source: Li et al. 2018, section 7.2; they centre on the last model before the principal components.

    Args:
        models: In the order of the trajectory, shape (R, d).
        points: Grid size, (alpha, beta) or one number for both.
        margin: Distance between trajectory and edge of the grid on each side, as a fraction of its width.
        labels: Names of the marks; by default 1, 2, .. R.
        buffers: Floating buffers of the models, shape (R, b).
        within: Further points (alpha, beta) that the grid must contain, shape (n, 2).
        seed: Of the random direction.

    Returns:
        Sweep with the shares of the variance (fractions) in attrs: explained_alpha and explained_beta.

    Raises:
        ValueError: If the models differ in length, or are all equal.
    """
    basis = stack_models(list(models))
    names = [str(index + 1) for index in range(len(basis))] if labels is None else list(labels)
    centre = combine64(basis, np.full(len(basis), 1.0)) / len(basis)
    coordinates, mixing, shares = principal_coordinates(_gram(basis, centre))
    directions = _directions(basis, centre, mixing)
    if flat := shares[1] == 0:
        directions[1] = orthogonal(directions[0], seed)
    identity = np.eye(len(basis), 3 + len(basis), k=3)
    low, high = _box(coordinates if within is None else np.concatenate([coordinates, within]), margin)
    size = (points, points) if isinstance(points, int) else points
    return Sweep(
        torch.cat([centre[None].to(basis), directions.to(basis), basis]),
        origin=np.eye(3 + len(basis))[0],
        axes=np.eye(3 + len(basis))[1:3],
        coords={name: axis(low[i], high[i], size[i]) for i, name in enumerate(("alpha", "beta"))},
        marks=tuple(make_mark(*mark) for mark in zip(names, coordinates.tolist(), identity.tolist(), strict=True)),
        buffers=None if buffers is None else _with_plane(buffers, mixing),
        attrs={
            "analysis": "principal_plane",
            "source": "Li et al. 2018, section 7.2",
            "isometric": 1,
            "collinear": int(flat),
            "explained_alpha": float(shares[0]),
            "explained_beta": float(shares[1]),
        },
    )


def _gram(models: Tensor, centre: Tensor) -> np.ndarray:
    """Inner products (R, R) of models minus centre, summed in float64 over blocks of the parameters."""
    total = torch.zeros(len(models), len(models), dtype=torch.float64, device=models.device)
    for low in range(0, models.shape[1], BLOCK):
        block = models[:, low : low + BLOCK].double() - centre[low : low + BLOCK]
        total += block @ block.T
    return total.cpu().numpy()


def principal_coordinates(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coordinates (R, 2), coefficients (R, 2) of the unit directions, and shares (2,) of the variance.

    Args:
        gram: Inner products (R, R) of the models minus their mean.

    Raises:
        ValueError: If the models are all equal.
    """
    values, vectors = np.linalg.eigh(gram)
    if len(values) < 2 or not values[-1] > 0:
        raise ValueError(f"{len(values)} models that are all equal; a plane needs models that differ.")
    values, vectors = values[[-1, -2]], vectors[:, [-1, -2]]
    if values[1] < FLAT * values[0]:
        values[1] = 0
    along, across = vectors.T
    signs = np.array([1.0 if along[-1] >= along[0] else -1.0, np.sign(across[np.abs(across).argmax()])])
    lengths = np.sqrt(values)
    coordinates = vectors * signs * lengths
    mixing = vectors * signs * np.divide(1, lengths, out=np.zeros(2), where=lengths > 0)
    return coordinates, mixing, values / np.trace(gram)


def _directions(models: Tensor, centre: Tensor, mixing: np.ndarray) -> Tensor:
    """Unit directions (2, d), float64: the combinations of models minus centre with coefficients (R, 2)."""
    directions = torch.zeros(2, models.shape[1], dtype=torch.float64, device=models.device)
    for model, shares in zip(models, mixing.tolist(), strict=True):
        away = model.double() - centre
        for direction, share in zip(directions, shares, strict=True):
            direction.add_(away, alpha=share)
    return directions


def _with_plane(buffers: Tensor, mixing: np.ndarray) -> Tensor:
    """Buffers (3 + R, b) of centre, directions and models: the same combinations of the models' own (R, b)."""
    away = buffers.double() - buffers.double().mean(0)
    moved = torch.from_numpy(mixing.T).to(away) @ away
    return torch.cat([buffers.mean(0, keepdim=True), moved.to(buffers), buffers])


def _box(coordinates: np.ndarray, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """Corners (2,) around places (R, 2); a trajectory without width gets the one of its length."""
    width = np.ptp(coordinates, axis=0)
    reach = (0.5 + margin) * np.where(width > 0, width, width.max())
    middle = (coordinates.max(0) + coordinates.min(0)) / 2
    return middle - reach, middle + reach
