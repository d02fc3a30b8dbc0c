"""Extreme eigenpairs of a symmetric matrix that is known only through its products with vectors, by Lanczos."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from landscape.curvature.lanczos import Eigenpairs, Krylov, Product, dots, norm, recurrence, relative, signed, turn

MEMORY = 2**30
"""Bytes of basis above which `leading` uses restarts."""

LEAST_ROWS = 20
"""Rows of a basis that are allowed up to `MOST` bytes."""

MOST = 3 * 2**30
"""Bytes of basis that only the rows without which k pairs cannot be followed may exceed."""

CONFIRMATIONS = (3, 7)
"""Products spent on looking for eigenvalues that one starting vector cannot see, where several are asked for: the first
number, and where that finds more than half of the last eigenvalue, the second in all."""


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


def leading(
    product: Product,
    start: Tensor,
    k: int,
    *,
    tolerance: float = 1e-3,
    max_products: int = 500,
    rows: int | None = None,
    seed: int = 0,
    vectors: bool = True,
) -> Eigenpairs:
    """The k eigenpairs of largest magnitude, by one recurrence from `start` (d,); a good guess saves products.

    One starting vector sees one vector of a repeated eigenvalue only. So, once all pairs have converged, or the space
    of the first vector is exhausted, a random vector outside of the basis is followed for a few products, and the
    largest pair there is added until none is larger. For k = 1 copies do not matter and are not looked for.

    Source: Parlett 1998, chapter 13.

    Args:
        product: The matrix.
        k: Number of pairs.
        tolerance: Bound on every residual, relative to the pair's own |value|, but not below rounding (100 units in the
            last place of the largest |value|); its square is the relative error expected of the values.
        max_products: Stops here with `converged` False.
        rows: Of the basis before a restart; by default 20 to 100, by the memory that they take.
        seed: Of the random vectors.
        vectors: Compute the vectors; else they are (0, d).

    Raises:
        ValueError: If k is not in 1..d, if the basis has no room for k, or if a product is not finite.
    """
    size = start.numel()
    if not 1 <= k <= size:
        raise ValueError(f"k is {k}, the matrix has {size} eigenvalues; ask for 1 to {size}.")
    if rows is not None and rows < min(size, k + 2):
        raise ValueError(f"a basis of {rows} rows is too small for {k} pairs; give at least {k + 2}.")
    rows = rows or _rows(start, k)
    stop = _Converged(k, tolerance)
    first = recurrence(product, start, max(max_products, k), rows=rows, leading=k, enough=stop)
    pairs = _pairs(first, start, k, stop.met or first.exhausted, vectors)
    if k == 1 or len(first.basis) == size or not pairs.converged:
        return pairs
    del start
    return _with_copies(product, first, pairs, k, tolerance, max_products, seed)


def _rows(start: Tensor, k: int) -> int:
    """Rows of a basis, by the memory that they take; at least four more than pairs."""
    row = start.numel() * start.element_size()
    return max(k + 4, min(MOST // row, max(LEAST_ROWS, 4 * k)), min(100, MEMORY // row))


def top(product: Product, start: Tensor, *, tolerance: float = 1e-2, max_products: int = 100) -> Pair:
    """The eigenpair of largest magnitude, by one recurrence from `start` (d,).

    Args:
        tolerance: Residual relative to |value|; its square is about the value's relative error.
    """
    pairs = leading(product, start, 1, tolerance=tolerance, max_products=max_products, vectors=False)
    return Pair(pairs.values[0].item(), pairs.residuals[0].item(), pairs.products)


SHARE = 0.1
"""Share of the accepted error that its estimate may reach."""

GUARD = 100
"""Multiple of the accepted error that the pair after a single one must be within, so that larger pairs are visible."""

UNSEEN = 0.01
"""Part of a pair in the starting vector, in standard deviations of a random one, below which it may be missed."""

BEYOND = 0.003
"""Relative distance from the last value at which pairs that may be missing are looked for."""


class _Converged:
    """Whether the k pairs of largest magnitude are within the tolerance; called once per step, as it tracks residuals.

    A Ritz value is off by at most residual^2 / gap, where the gap is the distance to the rest of the spectrum (Parlett
    1998, theorem 11.7.1): here to the other Ritz values, each with its own residual taken off, and at least the
    residual. Divided by 1 - r, with r the rate at which residual^2 falls, it must be below `SHARE` times `tolerance`^2
    of the value, which keeps residuals below `tolerance`. The pair after the last must have no chance of overtaking it.

    A pair of which the starting vector has little shows late. The new row of the basis is a polynomial p of the matrix
    times the first row, and it has length 1. So a pair with value x and a part c in the first row has |c p(x)| <= 1:
    where p just above the last value is so large that c is below `UNSEEN`, no larger pair is likely to be missing. For
    a single pair it is enough that the next one has converged somewhat (`GUARD`), which takes fewer products.
    """

    def __init__(self, k: int, tolerance: float) -> None:
        self.k, self.tolerance, self.met = k, tolerance, False
        self.before = np.full(k + 1, np.inf)

    def __call__(self, state: Krylov) -> bool:
        self.met = len(state.projected) >= self.k and self._check(state)
        return self.met

    def _check(self, state: Krylov) -> bool:
        all_values, _, all_lengths = state.ritz()
        values, lengths = all_values[: self.k + 1], all_lengths[: self.k + 1]
        k, magnitudes, exact = self.k, np.abs(values), lengths <= state.rounding()
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.clip(np.nan_to_num((lengths / self.before[: len(lengths)]) ** 2), 0, 0.9)
            error = lengths**2 / (_gaps(all_values, all_lengths)[: k + 1] * (1 - rate))
        self.before[: len(lengths)] = lengths
        error, accepted = np.minimum(np.nan_to_num(error), lengths), self.tolerance**2 * magnitudes
        close = (error <= SHARE * accepted) | exact
        if not close[:k].all():
            return False
        if len(values) == k:
            return state.exhausted
        if not close[k] and magnitudes[k] + min(lengths[k], 3 * error[k]) >= magnitudes[k - 1]:
            return False
        if k == 1:
            return bool(exact[k] or error[k] <= GUARD * accepted[k])
        return _all_visible(state, all_values, magnitudes[k - 1])


def _all_visible(state: Krylov, values: np.ndarray, last: float) -> bool:
    """Whether pairs `BEYOND` the last magnitude would show; taken for granted after a restart."""
    couplings = np.abs(np.append(np.diag(state.projected, 1), state.beyond))
    if not couplings.all():
        return True
    small = math.log(UNSEEN) - 0.5 * math.log(state.basis.shape[1])
    places = np.array([[(1 + BEYOND) * last], [-(1 + BEYOND) * last]])
    with np.errstate(divide="ignore"):
        grown = np.log(np.abs(places - values)).sum(axis=1) - np.log(couplings).sum()
    return bool((grown >= -small).all())


def _gaps(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Distance of each value to the nearest other one less that one's residual; from its residual to its magnitude."""
    distances = np.abs(values[:, None] - values) - np.minimum(lengths, np.abs(values))
    np.fill_diagonal(distances, np.inf)
    return np.minimum(np.maximum(distances.min(axis=1), lengths), np.abs(values))


def _pairs(state: Krylov, start: Tensor, k: int, converged: bool, vectors: bool) -> Eigenpairs:
    values, columns, lengths = state.ritz()
    rows = torch.from_numpy(columns[:, : k if vectors else 0].T.copy()).to(start) @ state.basis
    for row in rows:
        row.div_(max(norm(row), 1e-12))
    largest, left = torch.from_numpy(values[:k].copy()), torch.from_numpy(lengths[:k].copy())
    if state.exhausted:
        left = torch.zeros_like(left)
    return Eigenpairs(largest, signed(rows), relative(left, largest), state.products, converged)


def _with_copies(
    product: Product,
    first: Krylov,
    pairs: Eigenpairs,
    k: int,
    tolerance: float,
    max_products: int,
    seed: int,
) -> Eigenpairs:
    """The pairs with those added that `first` could not see: the largest ones outside of its basis.

    Of a basis that takes much memory only the pairs stay; its other rows are used again.
    """
    basis, products, generator = first.basis, first.products, torch.Generator().manual_seed(seed + 1)
    large, memory = LEAST_ROWS * basis[0].nbytes > MOST, None
    if large:
        turn(basis, first.ritz()[1][:, :k])
        basis = basis[: len(pairs.values)]
        for row in basis:
            row.div_(norm(row))
    values, vectors, residuals, converged = pairs.values, pairs.vectors, pairs.residuals, True
    few, many = CONFIRMATIONS[:1] * 2 if large else CONFIRMATIONS
    while len(basis) < basis.shape[1]:
        if large:
            memory = first.memory[len(basis) :] if len(first.memory) > len(basis) + few else None
        last = values[-1].abs().item() if len(values) == k else 0.0

        def outside(vector: Tensor, known: Tensor = basis) -> Tensor:
            return vector - dots(known, vector).to(vector) @ known

        def inner(vector: Tensor, outside: Product = outside) -> Tensor:
            image = outside(outside(product(vector)))
            return image if norm(image) > first.rounding() else torch.zeros_like(image)

        def quiet(state: Krylov, last: float = last) -> bool:
            return state.products == few and abs(state.ritz()[0][0].item()) < 0.5 * last

        start = outside(outside(torch.randn(basis.shape[1], generator=generator, dtype=torch.float64).to(basis)))
        state = recurrence(inner, start, many, enough=quiet, memory=memory)
        products += state.products
        largest = abs(state.ritz()[0][0].item())
        if len(values) == k and largest <= last * (1 + tolerance**2) + first.rounding():
            break
        if products >= max_products:
            converged = False
            break
        if not state.exhausted:
            left, stop = max_products - products, _Converged(1, tolerance)
            most = min(LEAST_ROWS, _rows(start, 1))
            state = recurrence(inner, start, left, rows=most, leading=1, enough=stop, memory=memory)
            products += state.products
        more = _pairs(state, start, 1, True, True)
        if memory is None:
            basis = torch.cat([basis, more.vectors])
        else:
            memory[0] = more.vectors[0]
            basis = first.memory[: len(basis) + 1]
        order = torch.cat([values, more.values]).abs().argsort(descending=True, stable=True)[:k]
        values, residuals = torch.cat([values, more.values])[order], torch.cat([residuals, more.residuals])[order]
        if len(vectors):
            vectors = torch.cat([vectors, more.vectors])[order.to(vectors.device)]
    return Eigenpairs(values, vectors, residuals, products, converged)
