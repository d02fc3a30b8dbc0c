"""Values at the marks and the grid points of a sweep, in one table, and the labelled surface that they make."""

import numpy as np
import xarray as xr

from landscape.sweep.grid import Sweep


class PointTable:
    """The points of a surface, marks first, whose values are entered as they become known.

    Attributes:
        rows: Coefficients of marks and grid points, shape (M + P, n); NaN outside the sweep.
        inside: Which of them are to be evaluated, shape (M + P,).
        values: Of each metric, shape (M + P, ...); NaN where a value is missing.

    Args:
        sweep: The points.
        surface: Their labelled surface; values that it has are in the table.
    """

    def __init__(self, sweep: Sweep, surface: xr.Dataset) -> None:
        self._surface, self._marks, self.shape = surface, len(sweep.marks), sweep.shape
        self.rows = np.concatenate([sweep.mark_coefficients, sweep.coefficients])
        self.inside = np.isfinite(self.rows).all(1)
        self.values: dict[str, np.ndarray] = {}
        for name in metrics_of(surface):
            at_marks, on_grid = surface[f"mark_{name}"].values, surface[name].values
            self.values[name] = np.concatenate([at_marks, on_grid.reshape(-1, *at_marks.shape[1:])])

    @property
    def missing(self) -> np.ndarray:
        """Which points lack a metric, shape (M + P,)."""
        return np.asarray(self.inside & np.any([is_missing(column) for column in self.values.values()], axis=0))

    def on_grid(self, mask: np.ndarray, *, marks: bool) -> np.ndarray:
        """A mask over the grid as one over marks and grid points (M + P,)."""
        return np.concatenate([np.full(self._marks, marks), mask.ravel()])

    def surface(self) -> xr.Dataset:
        """The labelled surface with the values of the table."""
        ds = self._surface.copy(deep=True)
        for name, column in self.values.items():
            ds[f"mark_{name}"].values[:] = column[: self._marks]
            ds[name].values[:] = column[self._marks :].reshape(ds[name].shape)
        return ds


def metrics_of(ds: xr.Dataset) -> list[str]:
    """Names of the metrics of a surface, which have values at marks too."""
    return [str(name) for name in ds.data_vars if f"mark_{name}" in ds]


def grid_dims(ds: xr.Dataset, name: str) -> list[str]:
    """Dimensions of the grid, in the order of a metric."""
    return [str(dim) for dim in ds[name].dims if f"mark_{dim}" in ds]


def is_missing(column: np.ndarray) -> np.ndarray:
    """Whether all values of a point (first axis) are missing; groups without samples remain NaN."""
    return np.asarray(np.isnan(column).reshape(len(column), -1).all(1))
