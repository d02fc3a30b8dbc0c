"""Extreme eigenpairs of a symmetric matrix that is known only through its products with vectors, by Lanczos."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from landscape import plugins
from landscape.curvature.lanczos import Lanczos, Product, Wide, dots, norm
from landscape.curvature.stopping import CERTAIN, KNOWN, NEAR_ZERO, UNITS, Stop, magnitude

WHICH = ("magnitude", "largest", "smallest", "both")
"""Eigenvalues that a search returns."""

MEMORY = 2**30
"""Bytes of basis above which `extreme` uses restarts."""

LEAST_ROWS = 20
"""Rows of a basis that are allowed up to `MOST` bytes."""

MOST = 3 * 2**30
"""Bytes of basis that only the rows without which k pairs cannot be followed may exceed."""

COPIED = 0.1
"""Cosine above which two eigenvectors are one."""


@dataclass(frozen=True)
class Eigenpairs:
    """Eigenpairs of a symmetric matrix, measured by products after the search.

    values (k,) are float64 on the CPU, 0 where not told from 0 and NaN where not converged; vectors (k, d) are
    unit rows, or (0, d); residuals (k,) are the lengths ||A v - value v|| or bounds on them, which an eigenvalue of A
    lies within of the value; converged (k,) is whether that is accepted; products counts matrix-vector products, also
    those of the measurement.
    """

    values: Tensor
    vectors: Tensor
    residuals: Tensor
    products: int
    converged: Tensor


def starting(like: Tensor, seed: int, *hints: Tensor) -> Tensor:
    """A vector (d,) to start from: random, so that it has a part of every direction, plus `hints` (d,) of equal length.

    The gradient is a good hint for one pair, for it lies mostly among the largest eigenvectors (Gur-Ari et al. 2018,
    section 2). Zero and non-finite hints are left out.
    """
    generator, wide = torch.Generator().manual_seed(seed), like.dtype == torch.float64
    total = torch.randn(like.numel(), generator=generator, dtype=torch.float64 if wide else torch.float32).to(like)
    total /= norm(total)
    for hint in hints:
        length = norm(hint)
        if 0 < length < math.inf:
            total.add_(hint, alpha=1 / length)
    return total


def extreme(
    product: Product,
    start: Tensor,
    k: int,
    *,
    which: str = "magnitude",
    tolerance: float = 1e-3,
    max_products: int = 500,
    rows: int | None = None,
    seed: int = 0,
    vectors: bool = True,
    wide: Wide = lambda: None,
) -> Eigenpairs:
    """k extreme eigenpairs, by one recurrence from `start` (d,); a good guess saves products.

    One starting vector sees one vector of a repeated eigenvalue only. So, once all pairs have converged, or the space
    of the first vector is exhausted, the recurrence goes on from a random vector outside of the basis, until a few
    products from there show nothing beyond the last pair. For k = 1 copies do not matter and are not looked for.

    The recurrence bounds all residuals. If all bounds are short enough, a product with a random mixture of the pairs
    confirms them together: its rest is at most as long as all of them. Else each pair is measured alone.

    Source: Parlett 1998, chapter 13; Wu and Simon 2000.

    Args:
        product: The matrix.
        k: Number of pairs.
        which: "magnitude", falling; "largest", algebraically, falling; "smallest", rising, so the most negative first;
            "both" ends, falling, one more of the largest where k is odd.
        tolerance: Bound on every residual, relative to the pair's own |value|; `accepted` says what holds near 0. Its
            square is the relative error expected of the values.
        max_products: Of the search; its measurement takes one more, or k + 1 at most.
        rows: Of the basis before a restart; by default 20 to 100, by the memory that they take.
        seed: Of the random vectors.
        vectors: Return the vectors; else they are (0, d).
        wide: Makes the product in float64, if there is one, for values that rounding blurs.

    Raises:
        ValueError: If `which` is unknown, k or rows is out of range, or a product is not finite.
    """
    size = start.numel()
    plugins.require_known("choice of eigenvalues", which, WHICH)
    if not 1 + (which == "both") <= k <= size:
        raise ValueError(f"k is {k}, the matrix has {size} eigenvalues; both ends take at least 2, others 1.")
    rows = default_rows(start, k) if rows is None else rows
    if rows < min(size, k + 4):
        raise ValueError(f"rows is {rows}; {k} pairs take at least {k + 4}.")
    state, stop = Lanczos(product, start, rows), Stop(k, which, tolerance)
    del start
    sure = _search(state, stop, max_products, torch.Generator().manual_seed(seed + 1))
    values, columns, _ = state.ritz()
    order, largest, dtype = listed(values, k, which), magnitude(state, values), state.basis.dtype
    pairs_found = (state.combined(columns[:, index]) for index in order)
    limit, empty = accepted(which, tolerance, largest, dtype), None if vectors else state.basis[:0]
    options: dict[str, Any] = {"spent": state.products, "empty": empty, "wide": wide}
    lengths = np.abs(state.rests(columns[:, order])).sum(axis=0) + 4 * torch.finfo(dtype).eps * largest
    if all(length <= limit(value) for value, length in zip(values[order], lengths, strict=True)):
        weights = np.random.default_rng(seed).choice([-1, 1], len(order)) * np.linspace(0.5, 1, len(order))
        mixes = (columns[:, order] @ (weights * scale) for scale in (1, values[order]))
        mixed, image = (state.basis.T @ torch.from_numpy(mix).to(state.basis) for mix in mixes)
        options["spent"] += 1
        if norm(product(mixed).sub_(image)) <= np.abs(weights) @ lengths + limit(0.0):
            options["values"] = list(zip(values[order].tolist(), lengths.tolist(), strict=True))
    return measured(product, pairs_found, sure, limit, **options)


def listed(values: np.ndarray, k: int, which: str) -> np.ndarray:
    """Indices (k,) of the values that a search returns, in their order; fewer where there are fewer values."""
    order = np.argsort({"magnitude": -np.abs(values), "smallest": values}.get(which, -values), kind="stable")
    return np.delete(order, slice((k + 1) // 2, max(len(order) - k // 2, 0))) if which == "both" else order[:k]


def accepted(which: str, tolerance: float, largest: float, dtype: torch.dtype) -> Callable[[float], float]:
    """The residual length accepted at a value of a matrix of this norm.

    Near 0, a floor is accepted beside the tolerance: rounding, `UNITS` in the last place of the norm, and at a signed
    end the tolerance of `NEAR_ZERO` of the norm. Values other than 0 must be known to `KNOWN` of themselves; there are
    none within `CERTAIN` of a signed end's tolerance, where a search does not tell which one is the last.
    """
    signed_end = tolerance * largest * (which != "magnitude")
    floor = max(UNITS * torch.finfo(dtype).eps * largest, NEAR_ZERO * signed_end)

    def limit(value: float) -> float:
        size = abs(value) if abs(value) > CERTAIN * signed_end else 0.0
        return floor if value == 0 else max(tolerance * size, min(floor, KNOWN * size))

    return limit


def measured(
    product: Product,
    vectors: Iterable[Tensor],
    sure: Sequence[bool],
    limit: Callable[[float], float],
    *,
    spent: int,
    values: Sequence[tuple[float, float]] = (),
    empty: Tensor | None = None,
    wide: Wide = lambda: None,
) -> Eigenpairs:
    """Unit vectors (d,) as eigenpairs: one product each gives the Rayleigh quotient and the residual, where not known.

    A value near 0 is always measured, by a second product in float64. If its residual is too long, but that of 0 is
    not, it is 0, and its residual is the longest that is accepted there.

    Args:
        sure: Whether each of k ranks can be that of its vector; vectors may be fewer.
        limit: Length of a residual that is accepted at a value.
        values: In place of the Rayleigh quotients, with bounds on their residuals; too long ones are measured.
        empty: Vectors (0, d) to return; by default all are.
        wide: As in `extreme`.
    """
    precise: Product | None = None
    pairs_found, converged = torch.full((2, len(sure)), math.nan, dtype=torch.float64), torch.zeros(len(sure)).bool()
    rows: list[Tensor] = []
    for rank, vector in enumerate(vectors):
        value, length = values[rank] if len(values) else (math.nan, math.inf)
        if length > limit(value) or abs(value) < limit(0.0) / KNOWN:
            spent, image, single = spent + 1, product(vector), vector
            value = dots(vector[None], image).item() if math.isnan(value) else value
            if abs(value) < limit(0.0) / KNOWN and (precise := precise or wide()) is not None:
                single, spent = vector.double(), spent + 1
                single /= norm(single)
                image = precise(single)
                value = dots(single[None], image).item()
            image_norm, length = norm(image), norm(image.sub_(single, alpha=value))
            if length > limit(value) and image_norm <= limit(0.0):
                value, length = 0.0, limit(0.0)
        repeated = any(abs(dots(row[None], vector).item()) > COPIED for row in rows)
        converged[rank] = sure[rank] and length <= limit(value) and not repeated
        pairs_found[0, rank], pairs_found[1, rank] = value if converged[rank] else math.nan, length
        if empty is None:
            rows.append(signed(vector) if converged[rank] else torch.full_like(vector, math.nan))
    rows += [torch.full_like(rows[0], math.nan)] * (len(sure) - len(rows)) if empty is None else []
    return Eigenpairs(pairs_found[0], torch.stack(rows) if empty is None else empty, pairs_found[1], spent, converged)


def signed(vector: Tensor) -> Tensor:
    """The vector, turned in place so that its entry of largest magnitude is positive; an eigenvector's sign is free."""
    return vector.neg_() if vector[vector.abs().argmax()] < 0 else vector


def default_rows(start: Tensor, k: int) -> int:
    """Rows of a basis, by the memory that they take; at least four more than pairs."""
    row = start.numel() * start.element_size()
    return max(k + 4, min(MOST // row, max(LEAST_ROWS, 4 * k)), min(100, MEMORY // row))


def _search(state: Lanczos, stop: Stop, max_products: int, generator: torch.Generator) -> list[bool]:
    """Products until the pairs look converged and a random vector shows no others; for which ranks that is so."""
    since, clear, k, rows = 0, False, stop.k, state.rows
    while True:
        state.step()
        look = stop(state)
        if state.used == state.size or (look and k == 1):
            return [True] * k
        if since:
            more = stop.beyond(state, since)
            clear = state.used >= k and (more is False or (more is None and state.used == rows))
            since = 0 if clear or more or state.exhausted else since
        if clear and look:
            return [True] * k
        if state.products >= max_products:
            return stop.sure()
        if (look or state.exhausted) and not since:
            few = k + (rows - k) // 4
            full = rows - state.used < max(3, (rows - k) // 2) and few < state.used
            random = torch.randn(state.size, generator=generator, dtype=torch.float64).to(state.basis)
            state.insert(random, listed(state.ritz()[0], few, stop.which) if full else None)
            since = state.used
            continue
        keep = listed(state.ritz()[0], k + (rows - k) // 2, stop.which) if state.used == rows else None
        rest = 0 if since or not state.waiting else _longest_rest(state, stop)
        if rest:
            state.insert(rest, keep)
        else:
            state.follow(keep)


def _longest_rest(state: Lanczos, stop: Stop) -> int:
    """Which rest has the largest part in the residual of one of the pairs: 0 for that of the last image."""
    values, columns, _ = state.ritz()
    return int(np.abs(state.rests(columns[:, listed(values, stop.k, stop.which)])).max(axis=1).argmax())
