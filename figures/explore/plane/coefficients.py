"""Points of a plane or line as combinations of the models that it goes through."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from figures.explore.plane.queries import Grid


def corner_places(surface: xr.Dataset, grid: Grid) -> np.ndarray:
    """Coordinates of the corners of a grid on its surface, shape (n, dimensions)."""
    dims = ("t",) if grid.kind == "line" else ("alpha", "beta")
    return np.stack([surface[f"mark_{name}"].values[: len(grid.query.models)] for name in dims], axis=1)


def coefficients(corners: np.ndarray, point: Sequence[float]) -> list[float]:
    """Coefficients (n,) of sum 1 that combine corners (n, dimensions) to a point (dimensions,).

    Raises:
        ValueError: If the corners lie on one line, where a plane's points are no combinations of them.
    """
    system = np.vstack([corners.T, np.ones(len(corners))])
    if np.linalg.matrix_rank(system, tol=1e-9 * max(1.0, float(np.abs(corners).max()))) < len(corners):
        raise ValueError("these three models lie on one line; select another one to evaluate points beside it.")
    return [float(value) for value in np.linalg.solve(system, [*point, 1.0])]


def is_another_box(surface: xr.Dataset, box: Sequence[float]) -> bool:
    """Whether a side of a box, alpha from and to, beta from and to, is more than 1 % of its width off the surface's."""
    sides = [float(value) for name in ("alpha", "beta") for value in (surface[name].min(), surface[name].max())]
    widths = [sides[1] - sides[0]] * 2 + [sides[3] - sides[2]] * 2
    return any(abs(side - other) > 0.01 * width for side, other, width in zip(box, sides, widths, strict=True))
