"""The minimum of a surface at sub-grid resolution, with its uncertainty."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import xarray as xr

from landscape.results.labelled import labelled
from landscape.surfaces.quadratic import Quadratic, quadratic

MinimumState = Literal["inside", "edge", "none"]
"""Inside the grid; at its edge or beyond; none: the surface is flat, a saddle, or too coarse."""

MOVES = 20
"""Most moves of the window towards the minimum of its quadratic."""

ROUNDING = 1e-6
"""Fraction of the loss by which a quadratic must rise over half its window; less is float32 rounding."""


@dataclass(frozen=True)
class Minimum:
    """A minimum at sub-grid resolution.

    Args:
        state: Whether it is inside.
        reason: Why it is not inside; empty if it is.
        at: Coordinates by dimension; NaN where it is not inside.
        value: Value of the quadratic there.
        covariance: Of the coordinates, shape (n, n): of the fit, plus that of the samples after `add_sampling_error`.
        fit: The fitted quadratic; None if the minimum is not inside.
    """

    state: MinimumState
    reason: str
    at: dict[str, float]
    value: float
    covariance: np.ndarray
    fit: Quadratic | None = None

    @property
    def errors(self) -> dict[str, float]:
        """Standard error of each coordinate."""
        return dict(zip(self.at, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    def offset(self, point: Mapping[str, float]) -> tuple[float, float]:
        """Distance to a place, in the unit of the coordinates, and its standard error; NaN where it is not inside.

        The error is the one along the line to the place. The distance of two noisy places is never negative: one
        below twice its error is compatible with 0.
        """
        away = np.array([self.at[name] - point[name] for name in self.at])
        distance = float(np.linalg.norm(away))
        direction = away / distance if distance > 0 else np.full(len(away), len(away) ** -0.5)
        return distance, float(np.sqrt(direction @ self.covariance @ direction))


def fitted_minimum(ds: xr.Dataset, metric: str = "loss") -> Minimum:
    """Minimum of a line or plane at sub-grid resolution, of a quadratic fitted to 3 cells per dimension around it.

    The window begins at the lowest cell and moves to the cell nearest to the minimum of its quadratic until this lies
    inside it. Third and fourth derivatives displace the minimum by an amount that shrinks with the square of the
    window. So the standard error of the fit is half the distance to the minimum of a quadratic in the window of five
    cells per dimension, in every direction; a grid of less than five points per side has no such error and no minimum.

    Args:
        ds: The metric over one or two dimensions; NaN are cells that are not there.
        metric: Metric to minimise.
    """
    values = ds[metric].values
    names = tuple(map(str, ds[metric].dims))
    if not np.isfinite(values).any():
        return _no_minimum(names, "none", f"no point of the grid has a finite {metric}")
    if min(values.shape) < 5:
        return _no_minimum(
            names, "none", f"the grid has {' x '.join(map(str, values.shape))} points, five a side are needed"
        )
    lowest = tuple(map(int, np.unravel_index(int(np.nanargmin(values)), values.shape)))
    edge = _at_edge(values, lowest)
    try:
        narrow = _enclosing_fit(ds, lowest, metric)
        wide = quadratic(ds, _nearest(ds, narrow.names, narrow.stationary(narrow.values)), reach=2, metric=metric)
        if not (_is_convex(narrow) and _is_convex(wide)):
            raise LookupError
        at, other = narrow.stationary(narrow.values), wide.stationary(wide.values)
    except (LookupError, np.linalg.LinAlgError):
        if edge:
            return _no_minimum(names, "edge", "the lowest point lies on the edge of the grid")
        return _no_minimum(names, "none", "the surface is flat or a saddle around its lowest point")
    bounds = [(float(ds[name].min()), float(ds[name].max())) for name in names]
    if any(not low <= coordinate <= high for coordinate, (low, high) in zip(at, bounds, strict=True)):
        return _no_minimum(names, "edge", "the minimum lies beyond the edge of the grid")
    error = np.eye(len(at)) * ((at - other) ** 2).sum() / 4
    return Minimum("inside", "", dict(zip(names, at.tolist(), strict=True)), narrow.value(at), error, narrow)


def label_minimum(minimum: Minimum, ds: xr.Dataset, metric: str = "loss") -> xr.Dataset:
    """A minimum as variables to assign to its surface.

    Returns:
        Dataset of minimum_alpha and minimum_alpha_error (or what the dimensions are called), in the unit of the
        coordinates, minimum_state and minimum_reason (text), and, where the surface has a mark "mean", minimum_offset
        and minimum_offset_error, from this mark; errors are standard errors.
    """
    variables: dict[str, Any] = {
        "minimum_state": ((), minimum.state, "where the minimum is"),
        "minimum_reason": ((), minimum.reason, "why"),
    }
    for name, at in minimum.at.items():
        units = ds[name].attrs.get("units", "1")
        variables[f"minimum_{name}"] = (), at, f"{name} of the minimum of the {metric}", units
        variables[f"minimum_{name}_error"] = (), minimum.errors[name], f"standard error of minimum_{name}", units
    if "mark" in ds.coords and "mean" in ds.mark.values:
        mean = ds.sel(mark="mean")
        distance, error = minimum.offset({name: float(mean[f"mark_{name}"]) for name in minimum.at})
        variables["minimum_offset"] = (), distance, f"distance from the mean to the minimum of the {metric}"
        variables["minimum_offset_error"] = (), error, "standard error of minimum_offset"
    ds = labelled(variables)
    ds["minimum_state"].attrs["metric"] = metric
    return ds


def add_sampling_error(minimum: Minimum, values: np.ndarray, sizes: np.ndarray) -> Minimum:
    """The same minimum with the covariance of the samples added, by the jackknife over folds.

    Args:
        minimum: One that is inside.
        values: Mean of the metric over the samples of each fold, shape (folds, N), at the cells of its fit.
        sizes: Samples in each fold, shape (folds,).

    Raises:
        ValueError: If the minimum is not inside, or there are fewer than two folds.
    """
    if minimum.fit is None or len(values) < 2:
        raise ValueError(
            f"the minimum is {minimum.state} and there are {len(values)} folds; give one inside, and two folds."
        )
    total = sizes @ values
    rest = (total - sizes[:, None] * values) / (sizes.sum() - sizes)[:, None]
    try:
        points = minimum.fit.stationary(rest)
    except np.linalg.LinAlgError:
        return _no_minimum(minimum.fit.names, "none", "without some of the samples the surface is flat")
    if not all(_is_convex(minimum.fit, fold) for fold in rest):
        return _no_minimum(minimum.fit.names, "none", "without some of the samples the surface is flat or a saddle")
    away = points - points.mean(0)
    return replace(minimum, covariance=minimum.covariance + (len(rest) - 1) / len(rest) * away.T @ away)


def _enclosing_fit(ds: xr.Dataset, start: tuple[int, ...], metric: str) -> Quadratic:
    """The quadratic of a window of three cells per dimension that contains its minimum.

    Raises:
        LookupError: If there is none.
    """
    cell = start
    for _ in range(MOVES):
        fit = quadratic(ds, cell, reach=1, metric=metric)
        if not _is_convex(fit):
            break
        nearest = _nearest(ds, fit.names, fit.stationary(fit.values))
        if all(span.start <= at < span.stop for at, span in zip(nearest, fit.window.values(), strict=True)):
            return fit
        cell = nearest
    raise LookupError(f"no window of the {metric} contains the minimum of its quadratic.")


def _is_convex(fit: Quadratic, values: np.ndarray | None = None) -> bool:
    """Whether a quadratic rises in every direction by more than rounding does, over half its window."""
    cell_values = fit.values if values is None else values
    scaled = fit.hessian(cell_values) * np.outer(fit.half, fit.half) / 2
    return bool(np.linalg.eigvalsh(scaled)[0] > ROUNDING * np.abs(cell_values).max())


def _nearest(ds: xr.Dataset, names: tuple[str, ...], at: np.ndarray) -> tuple[int, ...]:
    """Indices of the cell nearest to coordinates."""
    return tuple(int(np.abs(ds[name].values - coordinate).argmin()) for name, coordinate in zip(names, at, strict=True))


def _at_edge(values: np.ndarray, cell: tuple[int, ...]) -> bool:
    """Whether a cell lies on the edge of the grid, or next to a cell without a value."""
    around = np.pad(values, 1, constant_values=np.nan)[tuple(slice(at, at + 3) for at in cell)]
    return bool(np.isnan(around).any())


def _no_minimum(names: tuple[str, ...], state: MinimumState, reason: str) -> Minimum:
    nan = float("nan")
    return Minimum(state, reason, dict.fromkeys(names, nan), nan, np.full((len(names),) * 2, nan))
