"""How different two planes look once one is moved, turned and mirrored onto the other."""

import numpy as np
import xarray as xr
from scipy.interpolate import RegularGridInterpolator

from landscape.surfaces.basin import mark_coordinates, minimum

RINGS, ANGLES = 16, 72
"""Radii and angles of the polar grid on which planes are compared."""


def aligned_distance(first: xr.Dataset, second: xr.Dataset, *, metric: str = "loss", centre: str = "mean") -> float:
    """Root mean square difference of two planes around their centres, at the best rotation and reflection.

    Planes through different models have different axes; what they share is the unit of length and the mean of their
    models. Both are interpolated onto a polar grid around it, up to the largest radius inside both, and compared in all
    rotations by 5 degrees, mirrored too; areas count by their size. In the metric's unit.

    Args:
        first, second: Planes in units of parameter distance, as `landscape.plane` defines them.
        metric: Variable of both.
        centre: Mark that is the centre; the lowest cell where there is none of that name.

    Raises:
        ValueError: If one is no plane, or their centres lie at the edge.
    """
    radius = min(_radius(first, metric, centre), _radius(second, metric, centre))
    if not radius > 0:
        raise ValueError("the centre of a plane lies at its edge; compare planes with a margin around their models.")
    radii = radius * (np.arange(RINGS) + 0.5) / RINGS
    plain, turned = (_polar(ds, metric, centre, radii) for ds in (first, second))
    weights = np.broadcast_to(radii[:, None], plain.shape)
    best = np.inf
    for mirrored in (turned, turned[:, ::-1]):
        for shift in range(ANGLES):
            square = (plain - np.roll(mirrored, shift, axis=1)) ** 2
            finite = np.isfinite(square)
            if finite.mean() > 0.5:
                best = min(best, float((square[finite] * weights[finite]).sum() / weights[finite].sum()))
    return float(np.sqrt(best)) if np.isfinite(best) else float("nan")


def _centre(ds: xr.Dataset, metric: str, mark: str) -> dict[str, float]:
    if ds[metric].ndim != 2:
        raise ValueError(f"{metric} has dimensions {', '.join(map(str, ds[metric].dims))}; two planes are compared.")
    if "mark" in ds.dims and mark in ds["mark"].values.tolist():
        return mark_coordinates(ds, mark, metric)
    lowest = minimum(ds, metric)
    return {str(name): float(lowest[name]) for name in ds[metric].dims}


def _radius(ds: xr.Dataset, metric: str, mark: str) -> float:
    """Distance from the centre to the nearest edge."""
    return min(
        min(at - float(ds[name].min()), float(ds[name].max()) - at) for name, at in _centre(ds, metric, mark).items()
    )


def _polar(ds: xr.Dataset, metric: str, mark: str, radii: np.ndarray) -> np.ndarray:
    """Values (RINGS, ANGLES) around the centre."""
    centre = _centre(ds, metric, mark)
    angles = 2 * np.pi * np.arange(ANGLES) / ANGLES
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    coordinates = np.array(list(centre.values())) + radii[:, None, None] * directions
    grid = tuple(ds[name].values for name in ds[metric].dims)
    return RegularGridInterpolator(grid, ds[metric].values, bounds_error=False)(coordinates)
