"""Lowest passes between the models of a surface."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy import ndimage

from landscape.results.labelled import labelled
from landscape.surfaces.basin import mark_cells


def passes(ds: xr.Dataset, *, metric: str = "loss", stride: int = 1) -> xr.Dataset:
    """The lowest level at which two marked models lie in one basin, and the climb of a path between them.

    Unlike the barrier on the straight line, the path is free on the grid of the surface: this is the lowest pass. Cells
    touch along edges; a model belongs to the nearest cell.

    Args:
        ds: Surface with marks, as `surface` returns it.
        metric: Variable of `ds`.
        stride: Take every stride-th cell in each dimension.

    Returns:
        Dataset over mark and mark_other with level, and climb, the level minus the larger value in the two cells;
        in the metric's unit, NaN where a cell has no value or nothing connects them.

    Raises:
        LookupError: If the surface has no marks, or one lies outside of the grid.
    """
    names = [str(name) for name in ds[metric].dims]
    coarse = ds[metric].isel(dict.fromkeys(names, slice(None, None, stride)))
    if "mark" not in ds.dims or not ds.sizes["mark"]:
        raise LookupError("the surface marks no models; a pass leads from one model to another.")
    values = coarse.values
    cells = list(zip(*mark_cells(ds, metric, stride), strict=True))
    count = len(cells)
    levels = np.full((count, count), np.nan)
    for level in np.unique(values[np.isfinite(values)]):
        below, _ = ndimage.label(values <= level)
        labels = np.array([below[cell] for cell in cells])
        joined = (labels[:, None] == labels[None]) & (labels[:, None] > 0)
        levels[joined & np.isnan(levels)] = level
        if joined.all():
            break
    ends = np.array([values[cell] for cell in cells])
    marks, units = ds["mark"].values, ds[metric].attrs.get("units", "1")
    variables = {
        "level": (("mark", "mark_other"), levels, f"{metric} at the lowest pass", units),
        "climb": (("mark", "mark_other"), levels - np.maximum.outer(ends, ends), "climb over the lowest pass", units),
    }
    return labelled(variables, {"analysis": "passes", "source": "this project"}, {"mark": marks, "mark_other": marks})
