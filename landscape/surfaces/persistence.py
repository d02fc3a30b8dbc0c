"""Persistence diagrams of surfaces, by GUDHI, and the distances between them."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import xarray as xr
from scipy.optimize import linear_sum_assignment

from landscape.results.labelled import labelled
from landscape.surfaces.merge_tree import merge_tree


def persistence(ds: xr.Dataset, *, metric: str = "loss", stride: int = 1) -> xr.Dataset:
    """Births and deaths of components, loops and holes of the cells at or below a rising level.

    Dimension 0 are the basins of `landscape.merge_tree`: born at a minimum, ended at the pass to a lower one. Dimension
    1 are rings around a higher place, dimension 2 (of surfaces over three directions) shells. What never ends has the
    largest value of the surface as its death.

    Source: Wagner, Chen and Vucini 2012 (cubical complexes); GUDHI, `CubicalComplex`.

    Args:
        ds: Surface, as `surface` returns it; NaN cells are as high as the highest.
        metric: Variable of `ds`.
        stride: Take every stride-th cell in each dimension.

    Returns:
        Dataset over rank (most persistent first) with birth, death and persistence in the metric's unit and dimension.

    Raises:
        LookupError: If GUDHI is not installed, or no cell has a value.
    """
    gudhi = _gudhi()
    values = ds[metric].isel(dict.fromkeys(map(str, ds[metric].dims), slice(None, None, stride))).values
    if not np.isfinite(values).any():
        raise LookupError(f"the surface has no {metric} yet; all {values.size} cells are missing.")
    top = float(values[np.isfinite(values)].max())
    pairs = gudhi.CubicalComplex(vertices=np.where(np.isfinite(values), values, top)).persistence()
    rows = sorted(
        ((dim, birth, min(death, top)) for dim, (birth, death) in pairs), key=lambda row: (row[1] - row[2], row)
    )
    dims, births, deaths = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    units = ds[metric].attrs.get("units", "1")
    variables = {
        "birth": ("rank", births, f"{metric} at the birth", units),
        "death": ("rank", deaths, f"{metric} at the end", units),
        "persistence": ("rank", deaths - births, "persistence", units),
        "dimension": ("rank", dims.astype(int), "dimension"),
    }
    about = {"analysis": "persistence", "source": "Wagner, Chen and Vucini 2012", "stride": stride}
    return labelled(variables, about, {"rank": np.arange(1, len(rows) + 1)})


def basin_diagram(ds: xr.Dataset, *, metric: str = "loss", stride: int = 1) -> np.ndarray:
    """Births and ends of the basins, shape (minima, 2): minimum and pass; the lowest one ends at the largest value."""
    tree = merge_tree(ds, metric=metric, stride=stride)
    return np.stack([tree.minimum.values, tree.minimum.values + tree.persistence.values], axis=1)


def bottleneck(first: np.ndarray, second: np.ndarray) -> float:
    """Bottleneck distance of two diagrams (n, 2): the longest move of the best matching, in the metric's unit.

    A pair that is matched with none moves to the diagonal. Moves are measured by the larger coordinate.

    Source: Edelsbrunner and Harer 2010, section VIII.2; computed by GUDHI.

    Raises:
        LookupError: If GUDHI is not installed.
    """
    return float(_gudhi().bottleneck_distance(first, second, 0.0))


def wasserstein(first: np.ndarray, second: np.ndarray) -> float:
    """1-Wasserstein distance of two diagrams (n, 2): the sum of all moves of the best matching, as in `bottleneck`."""
    rows, columns = len(first), len(second)
    moves = np.zeros((rows + columns, columns + rows))
    moves[:rows, :columns] = np.abs(first[:, None] - second[None]).max(2)
    moves[:rows, columns:] = ((first[:, 1] - first[:, 0]) / 2)[:, None]
    moves[rows:, :columns] = ((second[:, 1] - second[:, 0]) / 2)[None]
    return float(moves[linear_sum_assignment(moves)].sum())


def _gudhi() -> ModuleType:
    try:
        import gudhi
    except ImportError:
        raise LookupError("this needs GUDHI, which is not installed: pip install 'fedscape[topology]'.") from None
    return gudhi
