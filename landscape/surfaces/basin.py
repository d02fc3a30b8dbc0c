"""Summaries of a surface: minimum, basin of the marked models, curvature, flatness, barrier of a line."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import xarray as xr
from scipy import ndimage

from landscape.results.labelled import labelled
from landscape.surfaces.minimum import fitted_minimum
from landscape.surfaces.quadratic import quadratic


def minimum(ds: xr.Dataset, metric: str = "loss") -> xr.DataArray:
    """Smallest value () on the grid, with its coordinates.

    Raises:
        LookupError: If no grid point has a value.
    """
    values = ds[metric]
    if not bool(values.notnull().any()):
        raise LookupError(f"the surface has no {metric} yet; all {values.size} cells are missing.")
    flat = int(np.nanargmin(values.values))
    return values.isel(dict(zip(values.dims, map(int, np.unravel_index(flat, values.shape)), strict=True)))


def smallest(ds: xr.Dataset, mark: str = "mean", metric: str = "loss") -> float:
    """Smallest value on the grid and at a mark, which may lie between grid points.

    Raises:
        LookupError: If no grid point has a value, or there is no such mark.
    """
    return float(np.fmin(minimum(ds, metric), _mark(ds, mark)[f"mark_{metric}"]))


def centre_offset(ds: xr.Dataset, mark: str = "mean", metric: str = "loss") -> float:
    """Distance from a mark to the fitted minimum, in the unit of the coordinates; NaN where there is none inside.

    On a plane through models this is a distance between parameters; on a line the difference in t.
    `landscape.surfaces.minimum` has its uncertainty, and the reason if there is none.
    """
    return fitted_minimum(ds, metric).offset(mark_coordinates(ds, mark, metric))[0]


def mark_coordinates(ds: xr.Dataset, mark: str = "mean", metric: str = "loss") -> dict[str, float]:
    """Coordinates of a mark, by dimension.

    Raises:
        LookupError: If there is no such mark.
    """
    marked = _mark(ds, mark)
    return {str(name): float(marked[f"mark_{name}"]) for name in ds[metric].dims}


def loss_excess(ds: xr.Dataset, mark: str = "mean", metric: str = "loss") -> float:
    """Value at a mark minus the smallest value on the grid and at the mark, in the metric's unit."""
    return float(_mark(ds, mark)[f"mark_{metric}"]) - smallest(ds, mark, metric)


def basin(ds: xr.Dataset, level: float | None = None, metric: str = "loss") -> xr.Dataset:
    """The component of the cells at or below a level that contains all marks, and its size.

    Cells touch along edges; a mark belongs to the nearest one. The default level is the lowest one with such a
    component: the height that a path on the grid between the marks must reach.

    Args:
        ds: Surface with marks, as `surface` returns it.
        level: Level in the unit of the metric; by default the lowest that connects all marks.
        metric: Variable of `ds`.

    Returns:
        Dataset with component, 1 inside and 0 outside, over the grid, level in the metric's unit, area () in squared
        units of the coordinates (a length on a line; NaN where no component holds all marks), and open (), 1 where it
        reaches the edge of the grid, so that the area is a lower bound.

    Raises:
        LookupError: If there is no mark, or a mark's cell has no value or lies outside of the grid.
    """
    values, cells = ds[metric].values, mark_cells(ds, metric)
    if not cells[0].size or not np.isfinite(values[cells]).all():
        raise LookupError("a basin needs marks whose cells have values; compute the surface around them first.")
    bound = _lowest_level(values, cells) if level is None else level
    component = _component(values, cells, bound)
    has_component = component is not None
    inside = component if component is not None else np.zeros(values.shape, bool)
    edge = any(inside.take(side, axis).any() for axis in range(inside.ndim) for side in (0, -1))
    units = ds[metric].attrs.get("units", "1")
    area = inside.sum() * _cell_area(ds, metric) if has_component else np.nan
    variables = {
        "component": (ds[metric].dims, inside.astype(float), "basin of the marks"),
        "level": ((), float(bound), f"{metric} at the basin's edge", units),
        "area": ((), float(area), "area of the basin"),
        "open": ((), float(edge) if has_component else np.nan, "basin reaches the grid's edge"),
    }
    coords = {str(name): ds[name] for name in ds[metric].dims}
    return labelled(variables, {"analysis": "basin", "source": "IMA paper, section 3.2"}, coords)


def area_below(ds: xr.Dataset, level: float, metric: str = "loss") -> float:
    """Area of the grid cells at or below a level, in squared units of the coordinates (a length on a line)."""
    return float((ds[metric] <= level).sum()) * _cell_area(ds, metric)


def curvature(ds: xr.Dataset, *, reach: int = 1, metric: str = "loss") -> xr.DataArray:
    """Curvatures (rank,), largest first, of a quadratic fitted around the grid minimum.

    Eigenvalues of H in c + g^T x + x^T H x / 2, fitted by least squares to the cells at most `reach` steps away in
    each dimension (at the edge of the grid the window moves inside). On a plane with unit directions they are
    second derivatives of the metric in parameter space.

    Raises:
        LookupError: If the window has too few values to fit a quadratic.
        ValueError: If the grid is smaller than the window.
    """
    lowest = minimum(ds, metric)
    cell = [int(np.abs(ds[name].values - float(lowest[name])).argmin()) for name in ds[metric].dims]
    fit = quadratic(ds, cell, reach=reach, metric=metric)
    eigenvalues = np.linalg.eigvalsh(fit.hessian(fit.values))[::-1]
    about = {"long_name": f"curvature of the {metric} at the minimum", "units": "1"}
    return xr.DataArray(
        eigenvalues, {"rank": np.arange(1, len(eigenvalues) + 1)}, ("rank",), name="curvature", attrs=about
    )


def flatness_radius(ds: xr.Dataset, rise: float, mark: str = "mean", metric: str = "loss") -> float:
    """Largest distance from a mark within which every cell is at most `rise` above the smallest value.

    In the unit of the coordinates and to the width of a cell; 0 where the mark itself is higher. It ends at the edge of
    the grid, so that it is a lower bound where the surface is flat up to there.
    """
    bound, marked = smallest(ds, mark, metric) + rise, _mark(ds, mark)
    if not float(marked[f"mark_{metric}"]) <= bound:
        return 0.0
    centre = {name: float(marked[f"mark_{name}"]) for name in ds[metric].dims}
    edge = min(min(at - float(ds[name].min()), float(ds[name].max()) - at) for name, at in centre.items())
    squares = xr.zeros_like(ds[metric])
    for name, at in centre.items():
        squares = squares + (ds[name] - at) ** 2
    above = (squares**0.5).where(~(ds[metric] <= bound)).min()
    return max(0.0, min(edge, float(above)) if bool(above.notnull()) else edge)


def line_summary(ds: xr.Dataset, mark: str = "mean", metric: str = "loss") -> xr.Dataset:
    """Minimum, ends, barrier and centre offset of a line through two models.

    barrier = max over t in [0, 1] of L(t) - ((1 - t) L(0) + t L(1)), at least 0 because the ends count; NaN where
    a loss on it is NaN, or the grid does not reach from 0 to 1.

    Source: IMA paper, section 3.2 (line); Frankle et al. 2020, section 2 (barrier).

    Args:
        ds: Surface of `line`: dimension t, its first two marks at t = 0 and t = 1.
        mark: The offset is measured from this mark, for example the end that is the moving average.

    Returns:
        Dataset of scalars: minimum, the smallest value on the grid; minimum_t and minimum_t_error, the fitted place of
        the minimum, and centre_offset, NaN where it is not inside the grid; start, end, barrier.
    """
    start, end = (float(value) for value in ds[f"mark_{metric}"].values[:2])
    between = ds[metric].where((ds.t >= 0) & (ds.t <= 1), drop=True)
    above = (between - ((1 - between.t) * start + between.t * end)).values
    complete = above.size and ds.t.min() < 1e-9 and ds.t.max() > 1 - 1e-9
    units, offset = ds[metric].attrs.get("units", "1"), fitted_minimum(ds, metric)
    differs = ds.attrs.get("statistics") == "recomputed" and ds.attrs.get("mark_statistics") == "own"
    barrier = f"{metric} barrier" + ", ends with own batch statistics, points between with recomputed ones" * differs
    summary = {
        "minimum": ((), float(minimum(ds, metric)), f"smallest {metric}", units),
        "minimum_t": ((), offset.at["t"], f"place of the fitted minimum of the {metric}"),
        "minimum_t_error": ((), offset.errors["t"], "standard error of that place"),
        "start": ((), start, f"{metric} at t = 0", units),
        "end": ((), end, f"{metric} at t = 1", units),
        "barrier": ((), np.maximum(0.0, above.max()) if complete else np.nan, barrier, units),
        "centre_offset": ((), centre_offset(ds, mark, metric), f"distance from {mark} to the minimum"),
    }
    return labelled(summary, {"analysis": "line_summary", "source": "IMA paper, section 3.2"})


def _mark(ds: xr.Dataset, mark: str) -> xr.Dataset:
    marks = [str(name) for name in ds.mark.values]
    if mark not in marks:
        raise LookupError(f"the surface has no mark {mark!r}; it has {', '.join(marks)}.")
    return ds.isel(mark=marks.index(mark))


def mark_cells(ds: xr.Dataset, metric: str, stride: int = 1) -> tuple[np.ndarray, ...]:
    """Indices of the cells, of every stride-th in each dimension, nearest to the marks: one array (marks,) each.

    Raises:
        LookupError: If a mark lies outside of the grid.
    """
    cells = []
    for name in ds[metric].dims:
        coordinates, at = ds[name].values, ds[f"mark_{name}"].values[:, None]
        outside = np.abs(coordinates - at).min(1) > 0.51 * np.diff(coordinates).max(initial=0)
        if outside.any():
            grid = f"{name} from {coordinates[0]:.4g} to {coordinates[-1]:.4g}"
            raise LookupError(f"mark {ds.mark.values[outside][0]} lies outside of the grid ({grid}); enlarge it.")
        cells.append(np.abs(coordinates[::stride] - at).argmin(1))
    return tuple(cells)


def _component(values: np.ndarray, cells: tuple[np.ndarray, ...], level: float) -> np.ndarray | None:
    """The component of the cells at or below a level that contains all of `cells`, or None."""
    with np.errstate(invalid="ignore"):
        components, _ = ndimage.label(values <= level)
    labels = set(components[cells].tolist())
    return components == labels.pop() if len(labels) == 1 and 0 not in labels else None


def _lowest_level(values: np.ndarray, cells: tuple[np.ndarray, ...]) -> float:
    """Smallest cell value at which one component contains all of `cells`; infinite if missing cells divide them."""
    levels = np.unique(values[np.isfinite(values)])
    first = bisect_left(levels, True, key=lambda level: _component(values, cells, level) is not None)
    return float(levels[first]) if first < len(levels) else float("inf")


def _cell_area(ds: xr.Dataset, metric: str) -> float:
    """Product of the grid's steps."""
    return float(np.prod([np.ptp(ds[name].values) / (ds.sizes[name] - 1) for name in ds[metric].dims]))
