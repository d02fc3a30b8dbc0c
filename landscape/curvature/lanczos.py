"""Extreme eigenpairs of a symmetric matrix that is known only through its products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Product = Callable[[Tensor], Tensor]
"""A symmetric matrix: (d,) -> (d,)."""

CONFIRMATIONS = 6
"""Products spent, after convergence, on looking for what one starting vector cannot see."""


@dataclass(frozen=True)
class Eigenpairs:
    """The eigenpairs of largest magnitude, falling in magnitude.

    values (k,) keep their sign and are float64 on the CPU; vectors (k, d) are unit rows; residuals (k,) are
    ||A v - value v|| / |value|; products counts matrix-vector products; converged is whether the tolerance was met.
    """

    values: Tensor
    vectors: Tensor
    residuals: Tensor
    products: int
    converged: bool


def lanczos(
    product: Product,
    like: Tensor,
    k: int,
    *,
    tolerance: float = 1e-3,
    max_products: int = 500,
    basis: int | None = None,
    seed: int = 0,
) -> Eigenpairs:
    """The k eigenpairs of largest magnitude, by Lanczos with full reorthogonalisation and thick restarts.

    A basis Q of orthonormal rows grows by one product at a time; the Ritz pairs of Q A Q^T are the estimates. The next
    row is the residual of the first wanted pair that has not converged, which is Lanczos's own next vector as long as
    one starting vector made the basis. Such a basis holds one vector of a repeated eigenvalue only; so, once all have
    converged, a new random row is followed for a few products, and the search goes on if a larger pair turns up.

    Source: Wu and Simon 2000 (thick restarts); Parlett 1998, chapter 13.

    Args:
        product: The matrix.
        like: Any vector (d,); sets length, dtype and device.
        k: Number of pairs.
        tolerance: Bound on every residual, relative to the pair's own |value|; pairs so small that rounding (100 units
            in the last place of the largest |value|) is above that are held to rounding.
        max_products: Stops here with `converged` False.
        basis: Rows of Q, and as many stored products, before a restart; None for max(20, 4 k).
        seed: Of the random starting rows.

    Raises:
        ValueError: If k is not in 1..d, if the basis has no room for k, or if a product is not finite.
    """
    size = like.numel()
    rows = min(size, max(20, 4 * k) if basis is None else basis)
    _check(size, k, rows, basis)
    generator = torch.Generator().manual_seed(seed)

    def random() -> Tensor:
        return torch.randn(size, generator=generator, dtype=torch.float64).to(like)

    vectors, images = like.new_zeros(rows, size), like.new_zeros(rows, size)
    projected = torch.zeros(rows, rows, dtype=torch.float64)
    direction, used, products, quiet = random(), 0, 0, 0
    while True:
        vectors[used] = _orthonormal(direction, vectors[:used], random)
        images[used] = _require_finite(product(vectors[used]))
        projected[used, : used + 1] = projected[: used + 1, used] = (vectors[: used + 1] @ images[used]).double().cpu()
        used, products = used + 1, products + 1

        values, rotation = _ritz(projected[:used, :used])
        leading = rotation[:, :k].T.to(like)
        remainder = leading @ images[:used] - values[:k, None].to(like) * (leading @ vectors[:used])
        lengths = remainder.norm(dim=1).double().cpu()
        unconverged = (lengths > _allowed(values, k, tolerance, like.dtype)).nonzero()
        quiet = 0 if len(unconverged) or used < k else quiet + 1

        complete = used == size or quiet > CONFIRMATIONS
        if complete or products >= max(max_products, k):
            converged = not len(unconverged) and used >= k
            unit_vectors = signed(torch.nn.functional.normalize(leading @ vectors[:used], dim=1))
            return Eigenpairs(values[:k], unit_vectors, relative(lengths, values[:k]), products, converged)
        if len(unconverged):
            direction = remainder[unconverged[0, 0]]
        else:
            direction = random() if quiet <= 1 else images[used - 1].clone()
        if used == rows:
            used = k + (rows - k) // 2
            turn = rotation[:, :used].T.to(like)
            vectors[:used], images[:used] = turn @ vectors, turn @ images
            projected = torch.zeros_like(projected)
            projected[:used, :used] = torch.diag(values[:used])


def _check(size: int, k: int, rows: int, basis: int | None) -> None:
    if not 1 <= k <= size:
        raise ValueError(f"k is {k}, the matrix has {size} eigenvalues; ask for 1 to {size}.")
    if rows < min(size, k + 2):
        raise ValueError(f"a basis of {basis} rows is too small for {k} pairs; give at least {k + 2}.")


def _require_finite(image: Tensor) -> Tensor:
    if not image.isfinite().all():
        raise ValueError("a matrix-vector product is not finite; the loss has no second derivative at this model.")
    return image


def _orthonormal(direction: Tensor, vectors: Tensor, random: Callable[[], Tensor]) -> Tensor:
    """Unit part of `direction` orthogonal to the rows of `vectors`; of a random one if nothing is left of it."""
    while True:
        length = direction.norm()
        for _ in range(2):  # one pass leaves rounding errors of the removed part, which may be nearly all
            direction = direction - (vectors @ direction) @ vectors
        if direction.norm() > 10 * torch.finfo(direction.dtype).eps * length:
            direction = direction / direction.norm()
            direction = direction - (vectors @ direction) @ vectors
            return direction / direction.norm()
        direction = random()


def _ritz(projected: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues falling in magnitude, and eigenvectors as columns."""
    values, columns = torch.linalg.eigh(projected)
    order = values.abs().argsort(descending=True, stable=True)
    return values[order], columns[:, order]


def _allowed(values: Tensor, k: int, tolerance: float, dtype: torch.dtype) -> Tensor:
    magnitudes = values[:k].abs()
    return torch.maximum(tolerance * magnitudes, 100 * torch.finfo(dtype).eps * magnitudes[0])


def relative(lengths: Tensor, values: Tensor) -> Tensor:
    """Residual lengths relative to |value|; 0 where there is nothing left."""
    return torch.where(lengths == 0, 0.0, lengths / values.abs())


def signed(vectors: Tensor) -> Tensor:
    """Rows with signs such that their entry of largest magnitude is positive; that of an eigenvector is arbitrary."""
    largest = vectors.gather(1, vectors.abs().argmax(1, keepdim=True))
    return torch.where(largest < 0, -vectors, vectors)
