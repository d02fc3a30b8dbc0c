"""The Lanczos recurrence: the projection of a symmetric matrix on a growing orthonormal basis."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from landscape.results.not_finite import NotFinite

Product = Callable[[Tensor], Tensor]
"""A symmetric matrix: (d,) -> (d,)."""

Wide = Callable[[], Product | None]
"""Makes the product of a matrix in float64 (d,) -> (d,); None where there is none."""

ROWS = 8
"""Basis vectors that a GPU allocates first; doubled when full, since most searches end early. A CPU takes no memory for
rows before they are written."""

COLUMNS = 1 << 22
"""Columns of a basis that a restart turns at once, so that it takes no second basis."""

TERMS = 1 << 13
"""Terms of an inner product that a CPU sums in the vectors' own precision; a GPU sums in parallel parts anyway."""


class Lanczos:
    """A symmetric matrix A on orthonormal rows Q (s, d), which grow by one per product.

    Every image is orthogonalised twice against all rows, and all its overlaps with them are kept, so that `projected`
    is Q A Q^T to rounding after any number of restarts and of vectors from outside. What an image has outside of the
    rows is its rest. Where a vector from outside comes in its place, the rest waits, and may follow later.

    Source: Golub and Van Loan 2013, algorithm 10.1.1; Giraud et al. 2005 (two passes); Wu and Simon 2000 (restarts).

    Attributes:
        used: Rows that were multiplied by the matrix.
        products: Matrix-vector products spent.
        left: Length of what the last image has outside of the rows.
        exhausted: The last image has nothing outside of the rows but rounding errors.
        tridiagonal: There was neither a restart nor a vector from outside.
        waiting: Rests that wait, as unit vectors (d,); one or two in most searches.
    """

    def __init__(self, product: Product, start: Tensor, rows: int) -> None:
        self.product, self.rows, self.size = product, min(rows, start.numel()), start.numel()
        self.used, self.products, self.left, self.exhausted, self.tridiagonal = 0, 0, 0.0, False, True
        first = self.rows if start.device.type == "cpu" or self.rows <= 2 * ROWS else ROWS
        self._memory = start.new_empty(first + 1, self.size)
        # `_open` has the parts (s,) in the images of the rows: of the last rest, then of those that wait
        self._projected, self._open = np.zeros((self.rows, self.rows)), [np.zeros(self.rows)]
        self.waiting: list[Tensor] = []
        torch.div(start, norm(start), out=self._memory[0])

    @property
    def projected(self) -> np.ndarray:
        """Q A Q^T, shape (s, s)."""
        return self._projected[: self.used, : self.used]

    @property
    def basis(self) -> Tensor:
        """Q, shape (s, d)."""
        return self._memory[: self.used]

    def ritz(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rising Ritz values (s,), their coefficients (s, s) as columns, and estimated residual lengths (s,)."""
        values, columns = map(Tensor.numpy, torch.linalg.eigh(torch.from_numpy(self.projected)))
        return values, columns, np.linalg.norm(self.rests(columns), axis=0)

    def rests(self, columns: np.ndarray) -> np.ndarray:
        """Parts (1 + w, r) of residuals along the last rest and w waiting ones, of Ritz vectors (s, r) as columns."""
        return np.stack([shares[: self.used] @ columns for shares in self._open])

    def step(self) -> None:
        """Multiply the newest row by the matrix.

        Raises:
            ValueError: If the product is not finite.
        """
        image = self.product(self._memory[self.used])
        self.used, self.products = self.used + 1, self.products + 1
        length = norm(image)
        if not math.isfinite(length):
            raise NotFinite("a matrix-vector product is not finite; the loss has no second derivative at this model.")
        if self.used == len(self._memory):
            more = image.new_empty(min(self.rows, 2 * self.used) + 1 - self.used, self.size)
            self._memory = torch.cat([self._memory, more])
        overlap = self._outside(image)
        self._projected[self.used - 1, : self.used] = self._projected[: self.used, self.used - 1] = overlap
        self.left = self._open[0][self.used - 1] = norm(self._memory[self.used])
        self.exhausted = self.used == self.size or self.left <= 10 * torch.finfo(image.dtype).eps * length

    def follow(self, keep: np.ndarray | None = None) -> None:
        """Let the next row be what the last image has outside; a full basis keeps the Ritz vectors `keep` (r,) only."""
        self._memory[self.used].div_(self.left)
        self._open[0][:] = 0
        if self.used == self.rows and keep is not None:
            self._restart(keep)

    def insert(self, vector: Tensor | int, keep: np.ndarray | None = None) -> None:
        """Let the next row be the part of `vector` (d,), or of a waiting rest, outside; the last rest waits.

        If there are Ritz vectors to keep, after a restart.
        """
        if isinstance(vector, int):
            self._open.pop(vector)
            vector = self.waiting.pop(vector - 1)
        if self.left > 0:
            self.waiting.append(self._memory[self.used] / self.left)
            self._open.append(self._open[0].copy())
            self._open[0][:] = 0
        if keep is not None:
            self._restart(keep)
        for _ in range(2):  # the second time rids a short remainder of its rounding errors
            self._outside(vector)
            vector = self._memory[self.used].div_(norm(self._memory[self.used]))
        self.tridiagonal = False

    def combined(self, coefficients: np.ndarray) -> Tensor:
        """The unit vector (d,) of these coefficients (s,)."""
        vector = self.basis.T @ torch.from_numpy(coefficients).to(self._memory)
        return vector.div_(max(norm(vector), 1e-30))

    def _outside(self, vector: Tensor) -> np.ndarray:
        """Overlaps (s,) of `vector` (d,) with the rows; the rest of it, after two passes, is the next row."""
        outside, rows = self._memory[self.used], self.basis
        first = dots(rows, vector)
        torch.addmv(vector, rows.T, first.to(vector), alpha=-1, out=outside)
        second = dots(rows, outside)
        outside.addmv_(rows.T, second.to(vector), alpha=-1)
        return (first + second).cpu().numpy()

    def _restart(self, keep: np.ndarray) -> None:
        values, columns, _ = self.ritz()
        newest, rests = self._memory[self.used].clone(), self.rests(columns[:, keep])
        turn(self.basis, columns[:, keep])
        self.used = len(keep)
        self._memory[self.used] = newest
        self._projected[:], self.tridiagonal = 0, False
        np.fill_diagonal(self.projected, values[keep])
        self._open = list(np.pad(rests, ((0, 0), (0, self.rows - self.used))))


def turn(rows: Tensor, columns: np.ndarray) -> None:
    """Overwrite the first r of `rows` (s, d) by their combinations with `columns` (s, r)."""
    mixing = torch.from_numpy(columns.T.copy()).to(rows)
    for at in range(0, rows.shape[1], COLUMNS):
        block = rows[:, at : at + COLUMNS]
        block[: len(mixing)] = mixing @ block


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
    end = len(vector) // TERMS * TERMS
    norms = vector[:end].reshape(-1, TERMS).norm(dim=1), vector[end:].norm()[None]
    length = torch.cat(norms).double().norm().item()
    return length if 1e-15 < length < 1e15 else vector.double().norm().item()  # squares beyond float32
