"""Quadratics fitted to the cells of a surface by least squares."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr


@dataclass(frozen=True)
class Quadratic:
    """c + g^T x + x^T H x / 2 around a cell, with n coordinates in the unit of the surface's.

    All functions take values at the N cells of the fit, shape (.., N), so that resampled values need no new fit.

    Args:
        names: Dimensions of the surface.
        centre: Coordinates (n,) of the cell where x is 0.
        cells: Coordinates x (N, n) of the cells that have a value.
        half: Half the width (n,) of the window.
        window: Cells in each dimension, as `isel` takes it.
        has_value: Which cells of the window have a value, shape of the window.
        values: Values (N,) at the cells.
        solver: Coefficients from values, shape (p, N): constant, gradient, then x_i x_j for i <= j.
    """

    names: tuple[str, ...]
    centre: np.ndarray
    cells: np.ndarray
    half: np.ndarray
    window: dict[str, slice]
    has_value: np.ndarray
    values: np.ndarray
    solver: np.ndarray

    def hessian(self, values: np.ndarray) -> np.ndarray:
        """Second derivatives (.., n, n)."""
        n = len(self.names)
        matrix = np.zeros((*values.shape[:-1], n, n))
        for column, (i, j) in enumerate(_pairs(n)):
            coefficient = values @ self.solver[1 + n + column]
            matrix[..., i, j] += coefficient
            matrix[..., j, i] += coefficient
        return matrix

    def stationary(self, values: np.ndarray) -> np.ndarray:
        """Coordinates (.., n) of the stationary point, in the surface's own.

        Raises:
            numpy.linalg.LinAlgError: If a Hessian is singular.
        """
        gradient = values @ self.solver[1 : 1 + len(self.names)].T
        return self.centre - np.linalg.solve(self.hessian(values), gradient[..., None])[..., 0]

    def value(self, at: np.ndarray) -> float:
        """Value of the quadratic at coordinates (n,)."""
        return float(quadratic_terms((at - self.centre)[None])[0] @ (self.solver @ self.values))


def quadratic(ds: xr.Dataset, around: Sequence[int], *, reach: int, metric: str = "loss") -> Quadratic:
    """Quadratic fitted to the cells at most `reach` steps from a cell in each dimension; missing cells are left out.

    At the edge of the grid the window moves inside.

    Args:
        ds: Surface, a line or a plane.
        around: Indices of the cell, one per dimension.
        reach: Cells on each side.

    Raises:
        LookupError: If the window has too few values to fit a quadratic.
        ValueError: If the grid is smaller than the window.
    """
    values, window = ds[metric], {}
    for name, index in zip(map(str, values.dims), around, strict=True):
        count = values.sizes[name]
        if reach < 1 or count < 2 * reach + 1:
            raise ValueError(
                f"reach is {reach} and the grid has {count} points in {name}; the fit takes reach >= 1 and "
                "2 reach + 1 points: compute a finer grid."
            )
        start = min(max(int(index) - reach, 0), count - 2 * reach - 1)
        window[name] = slice(start, start + 2 * reach + 1)
    centre = np.array([float(ds[name].values[index]) for name, index in zip(window, around, strict=True)])
    axes = [ds[name].values[span] - at for (name, span), at in zip(window.items(), centre, strict=True)]
    window_values, grid = values.isel(window).values, np.meshgrid(*axes, indexing="ij")
    half, has_value = np.array([np.ptp(axis) / 2 for axis in axes]), np.isfinite(window_values)
    cells = np.stack([axis[has_value] for axis in grid], axis=1)
    terms = quadratic_terms(cells / half)
    if np.linalg.matrix_rank(terms) < terms.shape[1]:
        raise LookupError(
            f"{has_value.sum()} values around the minimum do not determine a quadratic; compute more of the surface."
        )
    solver = np.linalg.pinv(terms) / quadratic_terms(half[None]).T
    return Quadratic(tuple(window), centre, cells, half, window, has_value, window_values[has_value], solver)


def quadratic_terms(x: np.ndarray) -> np.ndarray:
    """Terms (N, p) of a quadratic at x (N, n): 1, x_i, x_i x_j with i <= j."""
    return np.column_stack([np.ones(len(x)), x, *(x[:, i] * x[:, j] for i, j in _pairs(x.shape[1]))])


def _pairs(n: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n) for j in range(i, n)]
