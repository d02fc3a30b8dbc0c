"""The Lanczos recurrence: a symmetric matrix as a small tridiagonal one, seen from one starting vector."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from landscape.lanczos import Eigenpairs, Product, lanczos, relative, signed

MEMORY = 2**30
"""Bytes of basis that `leading` may take before it goes over to restarts."""

CONFIRMATIONS = (3, 8)
"""Products spent on looking for eigenvalues that one starting vector cannot see, where several are asked for: the first
number, and where that finds more than a quarter of the last eigenvalue, the second."""


@dataclass(frozen=True)
class Tridiagonal:
    """diagonal (s,) and beside (s,) in float64 on the CPU, basis (s, d); the last entry of `beside` leads out of it."""

    diagonal: Tensor
    beside: Tensor
    basis: Tensor
    exhausted: bool

    def ritz(self) -> tuple[Tensor, Tensor, Tensor]:
        """Ritz values (s,) falling in magnitude, their coefficients (s, s) as columns, residual lengths (s,)."""
        inner = self.beside[:-1]
        values, columns = torch.linalg.eigh(torch.diag(self.diagonal) + torch.diag(inner, 1) + torch.diag(inner, -1))
        order = values.abs().argsort(descending=True, stable=True)
        return values[order], columns[:, order], self.beside[-1] * columns[-1, order].abs()


@dataclass(frozen=True)
class Pair:
    """An eigenvalue, its unit eigenvector (d,), ||A v - value v|| / |value|, and the products spent on it."""

    value: float
    vector: Tensor
    residual: float
    products: int


def tridiagonal(product: Product, start: Tensor, steps: int, *, k: int = 1, tolerance: float = 0.0) -> Tridiagonal:
    """`steps` of the recurrence from `start` (d,), fully reorthogonalised.

    Fewer where the space is exhausted, or where the residuals of the k Ritz pairs of largest magnitude are below
    `tolerance` times their magnitude.

    Source: Golub and Van Loan 2013, algorithm 10.1.1.

    Raises:
        ValueError: If a product is not finite.
    """
    steps = min(steps, start.numel())
    basis = start.new_empty(steps, start.numel())
    diagonal, beside = torch.zeros(steps, dtype=torch.float64), torch.zeros(steps, dtype=torch.float64)
    basis[0] = start / start.norm()
    used = 0
    while True:
        image = product(basis[used])
        if not image.isfinite().all():
            raise ValueError("a matrix-vector product is not finite; the loss has no second derivative at this model.")
        length, known = image.norm(), basis[: used + 1]
        overlap = known @ image
        diagonal[used] = overlap[used].double()
        image = image - overlap @ known
        if image.norm() < 0.7 * length:  # where much was removed, its rounding errors weigh
            image = image - (known @ image) @ known
        beside[used] = image.norm().double()
        used += 1
        exhausted = used == start.numel() or bool(beside[used - 1] <= 10 * torch.finfo(start.dtype).eps * length)
        found = Tridiagonal(diagonal[:used], beside[:used], basis[:used], exhausted)
        if used == steps or exhausted or _converged(found, k, tolerance):
            return found
        torch.div(image, beside[used - 1].to(image), out=basis[used])


def leading(
    product: Product, start: Tensor, k: int, *, tolerance: float = 1e-3, max_products: int = 500, seed: int = 0
) -> Eigenpairs:
    """The k eigenpairs of largest magnitude, by one recurrence from `start` (d,), for which a good guess saves products.

    Where that is not enough (many products, a space that ends early, or signs of a repeated eigenvalue, of which one
    starting vector sees one copy only), `lanczos` takes over. For k = 1 copies do not matter and are not looked for.

    Args:
        tolerance, max_products, seed: As in `lanczos`.
    """
    size = start.numel()
    rows = min(size, max_products, max(20, 4 * k, min(100, MEMORY // (size * start.element_size()))))
    found = tridiagonal(product, start, max(rows, 1), k=k, tolerance=tolerance)
    products = len(found.diagonal)
    whole = products == size
    if whole or (_converged(found, k, tolerance) and not (found.exhausted and products < k)):
        pairs = _pairs(found, start, k, tolerance, products)
        if k == 1 or whole:
            return pairs
        last = pairs.values[-1].abs().item()
        hidden, spent = _hidden(product, found, last, seed)
        products += spent
        if hidden < 0.95 * last:
            return Eigenpairs(pairs.values, pairs.vectors, pairs.residuals, products, pairs.converged)
    left = max(k, max_products - products)
    pairs = lanczos(product, start, k, tolerance=tolerance, max_products=left, seed=seed)
    return Eigenpairs(pairs.values, pairs.vectors, pairs.residuals, products + pairs.products, pairs.converged)


def top(product: Product, start: Tensor, *, tolerance: float = 1e-2, max_products: int = 100) -> Pair:
    """The eigenpair of largest magnitude, by one recurrence from `start` (d,).

    Args:
        tolerance: Residual relative to |value|; its square is about the value's relative error.
    """
    pairs = leading(product, start, 1, tolerance=tolerance, max_products=max_products)
    return Pair(pairs.values[0].item(), pairs.vectors[0], pairs.residuals[0].item(), pairs.products)


def _converged(found: Tridiagonal, k: int, tolerance: float) -> bool:
    values, _, lengths = found.ritz()
    rounding = 100 * torch.finfo(found.basis.dtype).eps * values[0].abs()
    allowed = torch.maximum(tolerance * values.abs(), rounding) if tolerance > 0 else torch.zeros_like(values)
    return len(values) >= k and bool((lengths[:k] <= allowed[:k]).all())


def _pairs(found: Tridiagonal, start: Tensor, k: int, tolerance: float, products: int) -> Eigenpairs:
    values, columns, lengths = found.ritz()
    vectors = torch.nn.functional.normalize(columns[:, :k].T.to(start) @ found.basis, dim=1)
    lengths = torch.where(lengths <= torch.finfo(torch.float64).eps, 0.0, lengths)
    converged = found.exhausted or _converged(found, k, tolerance)
    return Eigenpairs(values[:k], signed(vectors), relative(lengths[:k], values[:k]), products, converged)


def _hidden(product: Product, found: Tridiagonal, last: float, seed: int) -> tuple[float, int]:
    """Largest |Ritz value| of the matrix on the complement of the basis, from a random vector; products spent."""
    basis = found.basis

    def outside(vector: Tensor) -> Tensor:
        return vector - (basis @ vector) @ basis

    generator = torch.Generator().manual_seed(seed + 1)
    random = torch.randn(basis.shape[1], generator=generator, dtype=torch.float64).to(basis)
    largest, spent = 0.0, 0
    for steps in CONFIRMATIONS:
        seen = tridiagonal(lambda vector: outside(product(vector)), outside(outside(random)), steps)
        largest, spent = seen.ritz()[0][0].abs().item(), spent + len(seen.diagonal)
        if largest < 0.25 * last:
            break
    return largest, spent
