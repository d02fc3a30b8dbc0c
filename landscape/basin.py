"""What a surface says in a few numbers: where its floor is, and whether the marked models share it."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy import ndimage


def minimum(ds: xr.Dataset, metric: str = "loss") -> xr.DataArray:
    """Smallest value () on the grid; its coordinates say where.

    Raises:
        LookupError: If no grid point has a value.
    """
    values = ds[metric]
    if not bool(values.notnull().any()):
        raise LookupError(f"the surface has no {metric} yet; all {values.size} cells are missing.")
    flat = int(np.nanargmin(values.values))
    place = np.unravel_index(flat, values.shape)
    return values.isel(dict(zip(values.dims, map(int, place), strict=True)))


def centre_offset(ds: xr.Dataset, mark: str = "mean", metric: str = "loss") -> float:
    """Distance from a mark to the grid minimum, in the unit of the coordinates.

    On a plane through models this is a distance between parameters; on a line the difference in t.
    """
    lowest, place = minimum(ds, metric), _mark(ds, mark)
    return float(np.hypot.reduce([float(lowest[name]) - float(place[f"mark_{name}"]) for name in ds[metric].dims]))


def loss_excess(ds: xr.Dataset, mark: str = "mean", metric: str = "loss") -> float:
    """Value at a mark minus the smallest value on the grid, in the metric's unit."""
    return float(_mark(ds, mark)[f"mark_{metric}"]) - float(minimum(ds, metric))


def connected(ds: xr.Dataset, level: float | None = None, metric: str = "loss") -> bool:
    """Whether the grid cells nearest to the marks lie in one component of the cells at or below a level.

    Cells touch along edges. Without a level it is the largest value in the marks' own cells, the lowest one at which
    the answer could be yes.
    """
    values = ds[metric].values
    cells = tuple(
        np.abs(ds[name].values[None] - ds[f"mark_{name}"].values[:, None]).argmin(1) for name in ds[metric].dims
    )
    bound = values[cells].max() if level is None else level
    with np.errstate(invalid="ignore"):
        components, _ = ndimage.label(values <= bound)
    found = set(components[cells].tolist())
    return len(found) == 1 and 0 not in found


def line_summary(ds: xr.Dataset, mark: str = "mean", metric: str = "loss") -> xr.Dataset:
    """Minimum, ends, barrier and centre offset of a line through two models.

    barrier = max over t in [0, 1] of L(t) - ((1 - t) L(0) + t L(1)), at least 0 because the ends count.

    Source: IMA paper, section 3.2 (line); Frankle et al. 2020, section 2 (barrier).

    Args:
        ds: Surface of `line`: dimension t, its first two marks at t = 0 and t = 1.
        mark: The offset is measured from this mark, for example the end that is the moving average.

    Returns:
        Dataset of scalars: minimum, minimum_t, start, end, barrier, centre_offset.
    """
    start, end = (float(value) for value in ds[f"mark_{metric}"].values[:2])
    between = ds[metric].where((ds.t >= 0) & (ds.t <= 1), drop=True)
    above = between - ((1 - between.t) * start + between.t * end)
    lowest, units = minimum(ds, metric), ds[metric].attrs.get("units", "1")
    named = {
        "minimum": (float(lowest), f"smallest {metric}", units),
        "minimum_t": (float(lowest.t), f"place of the smallest {metric}", "1"),
        "start": (start, f"{metric} at t = 0", units),
        "end": (end, f"{metric} at t = 1", units),
        "barrier": (max(0.0, float(above.max())), f"{metric} barrier", units),
        "centre_offset": (centre_offset(ds, mark, metric), f"distance from {mark} to the minimum", "1"),
    }
    found = {name: ((), value, {"long_name": long, "units": unit}) for name, (value, long, unit) in named.items()}
    return xr.Dataset(found, attrs={"analysis": "line_summary", "source": "IMA paper, section 3.2"})


def _mark(ds: xr.Dataset, mark: str) -> xr.Dataset:
    known = [str(name) for name in ds.mark.values]
    if mark not in known:
        raise LookupError(f"the surface has no mark {mark!r}; it has {', '.join(known)}.")
    return ds.isel(mark=known.index(mark))
