"""Geometry of a pool of models: random points on its simplex, distances between members, volume, and gradients."""

from dataclasses import dataclass
from math import factorial
from typing import Literal

import torch
from torch import Tensor

Coefficients = Literal["dirichlet", "normalized_uniform"]
Kind = Literal["l2", "sq_l2", "fisher"]


def simplex_point(kind: Coefficients, count: int, generator: torch.Generator) -> Tensor:
    """Random coefficients (count,), non-negative and summing to 1, float64.

    dirichlet is uniform on the simplex (normalised exponentials), normalized_uniform is U_j / sum_l U_l.
    """
    draws = torch.empty(count, dtype=torch.float64)
    if kind == "dirichlet":
        draws.exponential_(generator=generator)
    else:
        draws.uniform_(generator=generator).clamp_(min=torch.finfo(torch.float64).tiny)
    return draws / draws.sum()


@dataclass(frozen=True)
class Distance:
    """Distance of two models as a function of their difference u (..., d).

    l2: sqrt(|u|^2 + epsilon^2), smooth at 0; sq_l2: |u|^2; fisher: sum_i F_i u_i^2.

    Args:
        importance: Diagonal F (d,), for fisher.
        epsilon: Length at which l2 becomes smooth.
    """

    kind: Kind
    importance: Tensor | None = None
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        if (self.kind == "fisher") != (self.importance is not None):
            raise ValueError(
                f"distance {self.kind!r} with importance {self.importance}; fisher, and only it, needs one."
            )

    def __call__(self, difference: Tensor) -> Tensor:
        """Distances (...) of differences (..., d)."""
        square = (difference * self._scaled(difference)).sum(-1)
        return (square + self.epsilon**2).sqrt() if self.kind == "l2" else square

    def gradient(self, difference: Tensor) -> Tensor:
        """Gradients (..., d) with respect to the differences (..., d)."""
        if self.kind == "l2":
            return difference / self(difference)[..., None]
        return 2 * self._scaled(difference)

    def _scaled(self, difference: Tensor) -> Tensor:
        return difference if self.importance is None else self.importance * difference


@dataclass(frozen=True)
class MeanDistance:
    """Mean distance of a member to the others (n - 1, d), whose sum is divided by `count`."""

    others: Tensor
    distance: Distance
    count: int

    def __call__(self, member: Tensor) -> Tensor:
        """Mean distance () of a member (d,)."""
        return self.distance(member - self.others).sum() / self.count

    def gradient(self, member: Tensor) -> Tensor:
        """Gradient (d,) at a member (d,)."""
        return self.distance.gradient(member - self.others).sum(0) / self.count


class Volume:
    """Squared volume of the simplex of a member and the others (n - 1, d), as a function of the member.

    It is the squared volume of the others' simplex times the member's squared distance to their affine hull,
    divided by (n - 1)^2; the same as the Cayley-Menger determinant, without cancellation. Two members: their squared
    distance; three: the squared area of the triangle.

    Source: LSS-4 in papers.md 1.5 (the released code of LSS).
    """

    def __init__(self, others: Tensor) -> None:
        edges = (others[1:] - others[0]).double()
        gram = edges @ edges.T
        self.origin = others[0]
        self.edges = others[1:] - others[0]
        self.inverse = torch.linalg.pinv(gram, hermitian=True).to(others)
        self.factor = float(torch.linalg.det(gram)) / factorial(len(others)) ** 2

    def __call__(self, member: Tensor) -> Tensor:
        """Squared volume () with a member (d,)."""
        return self.factor * self._height(member).square().sum()

    def gradient(self, member: Tensor) -> Tensor:
        """Gradient (d,) at a member (d,)."""
        return 2 * self.factor * self._height(member)

    def _height(self, member: Tensor) -> Tensor:
        """The part (d,) of member - origin that is orthogonal to the others' affine hull."""
        reach = member - self.origin
        return reach - self.edges.T @ (self.inverse @ (self.edges @ reach))
