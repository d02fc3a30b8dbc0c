"""The Lanczos recurrence from one starting vector: tridiagonal matrix, leading eigenpairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from landscape.curvature.lanczos import Eigenpairs, Product, lanczos, relative, signed

MEMORY = 2**30
"""Bytes of basis above which `leading` uses restarts."""

ROWS = 8
"""Basis vectors allocated first; doubled when full, since most searches end early."""

CONFIRMATIONS = (3, 7)
"""Products spent on looking for eigenvalues that one starting vector cannot see, where several are asked for: the first
number, and where that finds more than half of the last eigenvalue, the second in all."""


@dataclass(frozen=True)
class Tridiagonal:
    """diagonal (s,), off_diagonal (s,), basis (s, d).

    The last off-diagonal entry leads out of the basis; exhausted: the basis is invariant.
    """

    diagonal: np.ndarray
    off_diagonal: np.ndarray
    basis: Tensor
    exhausted: bool

    def ritz(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ritz values (s,) falling in magnitude, their coefficients (s, s) as columns, residual lengths (s,)."""
        inner = self.off_diagonal[:-1]
        values, columns = np.linalg.eigh(np.diag(self.diagonal) + np.diag(inner, 1) + np.diag(inner, -1))
        order = np.argsort(-np.abs(values), kind="stable")
        return values[order], columns[:, order], self.off_diagonal[-1] * np.abs(columns[-1, order])


@dataclass(frozen=True)
class Pair:
    """An eigenvalue, ||A v - value v|| / |value| of its vector, and the products spent on it."""

    value: float
    residual: float
    products: int


def starting(like: Tensor, seed: int, *hints: Tensor) -> Tensor:
    """A vector (d,) to start from: random, so that it has a part of every direction, plus `hints` (d,) of equal length.

    The gradient is a good hint for one pair, for it lies mostly among the largest eigenvectors (Gur-Ari et al. 2018,
    section 2). Zero and non-finite hints are left out.
    """
    generator, wide = torch.Generator().manual_seed(seed), like.dtype == torch.float64
    total = torch.randn(like.numel(), generator=generator, dtype=torch.float64 if wide else torch.float32).to(like)
    total /= total.norm()
    for hint in hints:
        length = hint.norm().item()
        if 0 < length < math.inf:
            total.add_(hint, alpha=1 / length)
    return total


def tridiagonal(
    product: Product, start: Tensor, steps: int, *, enough: Callable[[Tridiagonal], bool] | None = None
) -> Tridiagonal:
    """`steps` of the recurrence from `start` (d,), fully reorthogonalised.

    Fewer if the space is exhausted, or if `enough` (called after every product) returns True.

    Source: Golub and Van Loan 2013, algorithm 10.1.1.

    Raises:
        ValueError: If a product is not finite.
    """
    steps, tiny = min(steps, start.numel()), 10 * torch.finfo(start.dtype).eps
    basis = start.new_empty(min(steps, ROWS) + 1, start.numel())
    diagonal, off_diagonal = np.zeros(steps), np.zeros(steps)
    torch.div(start, start.norm(), out=basis[0])
    for used in range(1, steps + 1):
        image, rows, beyond = product(basis[used - 1]), basis[:used], basis[used]
        length = image.norm().item()
        if not math.isfinite(length):
            raise ValueError("a matrix-vector product is not finite; the loss has no second derivative at this model.")
        overlap = rows @ image
        diagonal[used - 1] = overlap[-1].item()
        torch.addmv(image, rows.T, overlap, alpha=-1, out=beyond)
        left = beyond.norm().item()
        if left < 0.2 * length:  # after much cancellation, rounding errors matter
            beyond.addmv_(rows.T, rows @ beyond, alpha=-1)
            left = beyond.norm().item()
        off_diagonal[used - 1] = left
        exhausted = used == start.numel() or left <= tiny * length
        result = Tridiagonal(diagonal[:used], off_diagonal[:used], rows, exhausted)
        if exhausted or used == steps or (enough is not None and enough(result)):
            break
        beyond.div_(left)
        if used + 1 == len(basis):
            basis = torch.cat([basis, start.new_empty(min(steps - used, used), start.numel())])
    return result


def leading(
    product: Product,
    start: Tensor,
    k: int,
    *,
    tolerance: float = 1e-3,
    max_products: int = 500,
    seed: int = 0,
    vectors: bool = True,
) -> Eigenpairs:
    """The k eigenpairs of largest magnitude, by one recurrence from `start` (d,); a good guess saves products.

    Where that is not enough (many products, a space that ends early, or signs of a repeated eigenvalue, of which one
    starting vector sees one copy only), `lanczos` takes over. For k = 1 copies do not matter and are not looked for.

    Args:
        tolerance, max_products, seed: As in `lanczos`.
        vectors: Compute the vectors; else they are (0, d) if one recurrence was enough.
    """
    size = start.numel()
    rows = min(size, max_products, max(20, 4 * k, min(100, MEMORY // (size * start.element_size()))))
    stop = _Converged(k, tolerance)
    recurrence = tridiagonal(product, start, max(rows, 1), enough=stop)
    products = len(recurrence.diagonal)
    whole = products == size
    if whole or (stop.met and not (recurrence.exhausted and products < k)):
        pairs = _pairs(recurrence, start, k, products, recurrence.exhausted or stop.met, vectors)
        if k == 1 or whole:
            return pairs
        last = pairs.values[-1].abs().item()
        hidden, spent = _hidden(product, recurrence, last, seed)
        products += spent
        if hidden <= last * (1 + tolerance**2) + _rounding(recurrence):
            return Eigenpairs(pairs.values, pairs.vectors, pairs.residuals, products, pairs.converged)
    left = max(k, max_products - products)
    pairs = lanczos(product, start, k, tolerance=tolerance, max_products=left, seed=seed)
    return Eigenpairs(pairs.values, pairs.vectors, pairs.residuals, products + pairs.products, pairs.converged)


def top(product: Product, start: Tensor, *, tolerance: float = 1e-2, max_products: int = 100) -> Pair:
    """The eigenpair of largest magnitude, by one recurrence from `start` (d,).

    Args:
        tolerance: Residual relative to |value|; its square is about the value's relative error.
    """
    pairs = leading(product, start, 1, tolerance=tolerance, max_products=max_products, vectors=False)
    return Pair(pairs.values[0].item(), pairs.residuals[0].item(), pairs.products)


class _Converged:
    """Whether the k pairs of largest magnitude are within the tolerance; called once per step, as it tracks residuals.

    What the values are expected to grow yet must be below `tolerance`^2 of them, which keeps residuals below
    `tolerance`: one more step moves a value by about residual^2 / |value - a|, with a the last entry of the diagonal
    (what a step finds outside of the basis), and the steps after it by as much times powers of the rate at which
    residual^2 falls. The pair after the last must have no chance of overtaking it.
    """

    def __init__(self, k: int, tolerance: float) -> None:
        self.k, self.tolerance, self.met = k, tolerance, False
        self.before = np.full(k + 1, np.inf)

    def __call__(self, recurrence: Tridiagonal) -> bool:
        self.met = len(recurrence.diagonal) >= self.k and self._check(recurrence)
        return self.met

    def _check(self, recurrence: Tridiagonal) -> bool:
        values, _, lengths = (part[..., : self.k + 1] for part in recurrence.ritz())
        k, magnitudes, rounding = self.k, np.abs(values), _rounding(recurrence)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.clip(np.nan_to_num((lengths / self.before[: len(lengths)]) ** 2), 0, 0.9)
            gap = np.clip(np.nan_to_num(np.abs(values - recurrence.diagonal[-1]) / magnitudes), 0.1, 1)
            growth = np.nan_to_num(lengths**2 / (magnitudes * gap * (1 - rate)))
        self.before[: len(lengths)] = lengths
        close = (growth <= self.tolerance**2 * magnitudes) | (lengths <= rounding)
        if not close[:k].all():
            return False
        if len(values) == k:
            return recurrence.exhausted
        if close[k] or magnitudes[k] + lengths[k] < magnitudes[k - 1]:
            return True
        # a larger pair that has not converged shows as a next pair with a large residual
        quiet = lengths[k] <= 10 * self.tolerance * magnitudes[k]
        return bool(quiet and magnitudes[k] + 3 * growth[k] < magnitudes[k - 1])


def _rounding(recurrence: Tridiagonal) -> float:
    """100 units in the last place of the matrix's norm, as far as known."""
    return (
        100
        * torch.finfo(recurrence.basis.dtype).eps
        * max(np.abs(recurrence.diagonal).max(), recurrence.off_diagonal.max())
    )


def _pairs(recurrence: Tridiagonal, start: Tensor, k: int, products: int, converged: bool, vectors: bool) -> Eigenpairs:
    values, columns, lengths = recurrence.ritz()
    rows = torch.from_numpy(columns[:, : k if vectors else 0].T.copy()).to(start)
    turned = (
        signed(torch.nn.functional.normalize(rows @ recurrence.basis, dim=1)) if vectors else rows @ recurrence.basis
    )
    largest, left = torch.from_numpy(values[:k].copy()), torch.from_numpy(lengths[:k].copy())
    if recurrence.exhausted:
        left = torch.zeros_like(left)
    return Eigenpairs(largest, turned, relative(left, largest), products, converged)


def _hidden(product: Product, recurrence: Tridiagonal, last: float, seed: int) -> tuple[float, int]:
    """Largest |Ritz value| of the matrix on the complement of the basis, from a random vector; products spent."""
    basis = recurrence.basis

    def outside(vector: Tensor) -> Tensor:
        return vector - (basis @ vector) @ basis

    generator = torch.Generator().manual_seed(seed + 1)
    random = torch.randn(basis.shape[1], generator=generator, dtype=torch.float64).to(basis)
    few, many = CONFIRMATIONS

    def quiet(seen: Tridiagonal) -> bool:
        return len(seen.diagonal) == few and abs(seen.ritz()[0][0].item()) < 0.5 * last

    seen = tridiagonal(lambda vector: outside(product(vector)), outside(outside(random)), many, enough=quiet)
    return abs(seen.ritz()[0][0].item()), len(seen.diagonal)
