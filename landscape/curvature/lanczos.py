"""The Lanczos recurrence: the projection of a symmetric matrix on a growing basis, with thick restarts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

Product = Callable[[Tensor], Tensor]
"""A symmetric matrix: (d,) -> (d,)."""

ROWS = 8
"""Basis vectors allocated first; doubled when full, since most searches end early."""

COLUMNS = 1 << 22
"""Columns of a basis that a restart turns at once, so that it takes no second basis."""

TERMS = 1 << 13
"""Terms of an inner product that a CPU sums in the vectors' own precision; a GPU sums in parallel parts anyway."""


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


@dataclass(frozen=True)
class Krylov:
    """The matrix on a basis of orthonormal rows, of which all but the last are mapped into it.

    projected (s, s): Q A Q^T; memory (r, d): rows, the first s of which are the basis Q; beyond: length of what A maps
    the last row to outside of the basis; products spent; exhausted: the basis is invariant.
    """

    projected: np.ndarray
    memory: Tensor
    beyond: float
    products: int
    exhausted: bool

    @property
    def basis(self) -> Tensor:
        """Q, shape (s, d)."""
        return self.memory[: len(self.projected)]

    def ritz(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ritz values (s,) falling in magnitude, their coefficients (s, s) as columns, residual lengths (s,)."""
        values, columns = np.linalg.eigh(self.projected)
        order = np.argsort(-np.abs(values), kind="stable")
        return values[order], columns[:, order], self.beyond * np.abs(columns[-1, order])

    def rounding(self) -> float:
        """100 units in the last place of the matrix's norm, as far as known."""
        return 100 * torch.finfo(self.basis.dtype).eps * max(np.abs(self.projected).max(), self.beyond)


def recurrence(
    product: Product,
    start: Tensor,
    steps: int,
    *,
    rows: int | None = None,
    leading: int = 0,
    enough: Callable[[Krylov], bool] | None = None,
    memory: Tensor | None = None,
) -> Krylov:
    """`steps` of the Lanczos recurrence from `start` (d,), fully reorthogonalised.

    Without a restart the projected matrix is tridiagonal. Fewer steps if the space is exhausted, or if `enough` (called
    after every product) returns True.

    Source: Golub and Van Loan 2013, algorithm 10.1.1; Wu and Simon 2000 (thick restarts).

    Args:
        rows: Of the basis before a restart; by default as many as there are steps.
        leading: A restart keeps so many Ritz vectors, and half of the others.
        memory: Rows (r, d) to overwrite with the basis, one of which is spare; by default new ones.

    Raises:
        ValueError: If a product is not finite.
    """
    rows = min(start.numel(), steps if rows is None else rows)
    tiny, used, kept_rows = 10 * torch.finfo(start.dtype).eps, 0, 0
    if memory is None:
        basis = start.new_empty((rows if rows <= 2 * ROWS else ROWS) + 1, start.numel())
    else:
        basis, rows = memory, min(rows, len(memory) - 1)
    projected = np.zeros((rows, rows))
    torch.div(start, norm(start), out=basis[0])
    for products in range(1, steps + 1):
        used += 1
        image, known, beyond = product(basis[used - 1]), basis[:used], basis[used]
        length = image.norm().item()
        if not math.isfinite(length):
            raise ValueError("a matrix-vector product is not finite; the loss has no second derivative at this model.")
        overlap = dots(known, image)
        projected[used - 1, used - 1] = overlap[-1].item()
        if kept_rows == used - 1:  # the first row after a restart, which all Ritz vectors are mapped to
            projected[used - 1, :kept_rows] = projected[:kept_rows, used - 1] = overlap[:-1].cpu().numpy()
        torch.addmv(image, known.T, overlap.to(image), alpha=-1, out=beyond)
        del image  # a vector less while the next product is taken
        if beyond.norm().item() < 0.2 * length:  # after much cancellation, rounding errors matter
            beyond.addmv_(known.T, dots(known, beyond).to(beyond), alpha=-1)
        left = norm(beyond)
        exhausted = used == start.numel() or left <= tiny * length
        result = Krylov(projected[:used, :used].copy(), basis, left, products, exhausted)
        if exhausted or products == steps or (enough is not None and enough(result)):
            break
        beyond.div_(left)
        if used == rows:
            values, columns, _ = result.ritz()
            used = kept_rows = leading + (rows - leading) // 2
            last = beyond.clone()
            turn(known, columns[:, :used])
            basis[used] = last
            projected[:] = 0
            np.fill_diagonal(projected[:used, :used], values[:used])
            continue
        projected[used, used - 1] = projected[used - 1, used] = left
        if used + 1 == len(basis):
            basis = torch.cat([basis, start.new_empty(min(rows - used, used), start.numel())])
    return result


def turn(rows: Tensor, columns: np.ndarray) -> None:
    """Overwrite the first r of `rows` (s, d) by their combinations with `columns` (s, r)."""
    mixing = torch.from_numpy(columns.T.copy()).to(rows)
    for at in range(0, rows.shape[1], COLUMNS):
        part = rows[:, at : at + COLUMNS]
        part[: len(mixing)] = mixing @ part


def dots(rows: Tensor, vector: Tensor) -> Tensor:
    """Inner products of `rows` (s, d) with `vector` (d,) as (s,) in float64, `TERMS` terms at a time.

    A sum in float32 loses digits as it grows longer: torch's norm of 66 million random numbers is off by 0.5 %.
    """
    total = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    width = TERMS if vector.device.type == "cpu" else 128 * TERMS
    for at in range(0, len(vector), width):
        total += rows[:, at : at + width] @ vector[at : at + width]
    return total


def norm(vector: Tensor) -> float:
    """Euclidean length of `vector` (d,), summed like `dots`."""
    whole = len(vector) // TERMS * TERMS
    parts = vector[:whole].reshape(-1, TERMS).norm(dim=1), vector[whole:].norm()[None]
    return torch.cat(parts).double().norm().item()


def relative(lengths: Tensor, values: Tensor) -> Tensor:
    """Residual lengths relative to |value|; 0 where there is nothing left."""
    return torch.where(lengths == 0, 0.0, lengths / values.abs())


def signed(vectors: Tensor) -> Tensor:
    """The rows, turned in place so that their entry of largest magnitude is positive; an eigenvector's sign is free."""
    for row in vectors:
        if row[row.abs().argmax()] < 0:
            row.neg_()
    return vectors
