"""The merge tree of a surface: its minima, and the lowest passes at which their basins join."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import xarray as xr

from landscape.results.labelled import labelled
from landscape.surfaces.quadratic import quadratic_terms


def merge_tree(ds: xr.Dataset, *, metric: str = "loss", stride: int = 1) -> xr.Dataset:
    """Minima of a surface on a grid of any dimension, ranked by persistence, with the pass that joins each to a lower.

    As a level rises, a component of the cells at or below it is born at each minimum; where two components meet, the
    one with the higher minimum ends in the other (the elder rule). Its persistence is the pass minus the minimum: the
    climb out of its basin. Cells touch along edges; cells of equal height that touch are one
    minimum, at the first of them, or none where they touch a lower cell.

    SMAD, the saddle-minimum average distance, is the mean over minima of the height of the first pass above each.

    Source: Edelsbrunner and Harer 2010, section VII.1 (elder rule); Landscaper (Vis4SciML) for SMAD.

    Args:
        ds: Surface, as `surface` returns it; NaN cells belong to no component.
        metric: Variable of `ds`.
        stride: Take every stride-th cell in each dimension, for the tree at a lower resolution.

    Returns:
        Dataset over rank (1: the lowest minimum) with minimum, saddle (NaN for rank 1) and persistence (that of rank 1
        reaches to the largest value, as does that of a basin which NaN cells separate from it), in the metric's unit;
        parent, the rank that the basin ends in (0 for rank 1); first_pass, the lowest pass above the minimum (NaN if it
        is alone); at_NAME and saddle_NAME, coordinates of minimum and pass by dimension; smad (); and roughness (), see
        `roughness`.

    Raises:
        LookupError: If no cell has a value.
        ValueError: If stride is below 1.
    """
    if stride < 1:
        raise ValueError(f"stride is {stride}; give 1 for the whole grid, 2 for every second cell, and so on.")
    names = [str(name) for name in ds[metric].dims]
    coarse = ds[metric].isel({name: slice(None, None, stride) for name in names})
    values = coarse.values
    if not np.isfinite(values).any():
        raise LookupError(f"the surface has no {metric} yet; all {values.size} cells are missing.")
    pairs, first_pass = join_basins(values)
    flat, top = values.ravel(), float(values[np.isfinite(values)].max())

    def height(pass_cell: int) -> float:
        return float(flat[pass_cell]) if pass_cell >= 0 else np.nan

    lowest = min(pairs, key=lambda m: (flat[m], m))
    climbs = {m: (height(saddle) if saddle >= 0 else top) - flat[m] for m, (saddle, _) in pairs.items()}
    order = [lowest, *sorted(pairs.keys() - {lowest}, key=lambda m: (-climbs[m], m))]
    parents = [pairs[m][1] for m in order]
    minima, first = flat[order], np.array([height(first_pass.get(m, -1)) for m in order])
    units = ds[metric].attrs.get("units", "1")
    variables = {
        "minimum": ("rank", minima, f"{metric} at the minimum", units),
        "saddle": (
            "rank",
            np.array([height(pairs[m][0]) for m in order]),
            f"{metric} at the pass to a lower minimum",
            units,
        ),
        "persistence": ("rank", np.array([climbs[m] for m in order]), "persistence", units),
        "parent": (
            "rank",
            np.array([order.index(m) + 1 if m >= 0 else 0 for m in parents]),
            "rank that the basin ends in",
        ),
        "first_pass": ("rank", first, f"{metric} at the first pass", units),
        "smad": (
            (),
            float(np.nanmean(first - minima)) if np.isfinite(first).any() else 0.0,
            "saddle-minimum distance",
            units,
        ),
        "roughness": ((), roughness(coarse), "share of the variance that is not quadratic"),
    }
    for axis, name in enumerate(names):
        unit = ds[name].attrs.get("units", "1")
        cells = np.array([np.unravel_index(m, values.shape)[axis] for m in order])
        passes = np.array([np.unravel_index(max(pairs[m][0], 0), values.shape)[axis] for m in order])
        ends = np.array([pairs[m][0] >= 0 for m in order])
        grid = coarse[name].values
        variables[f"at_{name}"] = ("rank", grid[cells], f"{name} of the minimum", unit)
        variables[f"saddle_{name}"] = ("rank", np.where(ends, grid[passes], np.nan), f"{name} of the pass", unit)
    about = {"analysis": "merge_tree", "source": "Edelsbrunner and Harer 2010, section VII.1", "stride": stride}
    return labelled(variables, about, {"rank": np.arange(1, len(order) + 1)})


def join_basins(values: np.ndarray) -> tuple[dict[int, tuple[int, int]], dict[int, int]]:
    """The cell at which each minimum's basin ends in an older one, and the first cell at which it meets any.

    Args:
        values: Of any shape; cells without a finite value are left out.

    Returns:
        By the flat number of each minimum: (cell of the pass, minimum that it ends in), (-1, -1) for the oldest of a
        component that reaches no other; and the cell of the first pass above it, where there is one.
    """
    flat, neighbours = values.ravel(), _neighbours(values.shape)
    root: dict[int, int] = {}
    pairs: dict[int, tuple[int, int]] = {}
    first: dict[int, int] = {}

    def find(cell: int) -> int:
        while root[cell] != cell:
            root[cell] = root[root[cell]]
            cell = root[cell]
        return cell

    order = np.argsort(flat, kind="stable")
    age = {int(cell): index for index, cell in enumerate(order)}
    for cell in map(int, order):
        if not np.isfinite(flat[cell]):
            continue
        basins = sorted({find(other) for other in neighbours(cell) if other in root}, key=age.__getitem__)
        root[cell] = basins[0] if basins else cell
        for younger in basins[1:]:
            root[younger] = basins[0]
            if flat[younger] < flat[cell]:  # else it is a part of the plateau of this cell
                pairs[younger] = (cell, basins[0])
        minima = [minimum for minimum in basins if flat[minimum] < flat[cell]]
        for minimum in minima if len(minima) > 1 else ():
            first.setdefault(minimum, cell)
    oldest = {find(cell) for cell in root}
    return {**dict.fromkeys(sorted(oldest, key=age.__getitem__), (-1, -1)), **pairs}, first


def roughness(values: xr.DataArray) -> float:
    """Share of a surface's variance that no quadratic explains: 0 for a bowl, near 1 for noise; NaN on too few cells.

    1 - R^2 of the least-squares quadratic over all finite cells.
    """
    grids = np.meshgrid(*(_centred(values[name].values) for name in values.dims), indexing="ij")
    finite = np.isfinite(values.values)
    x, y = np.stack([grid[finite] for grid in grids], 1), values.values[finite]
    terms = quadratic_terms(x)
    if len(y) <= terms.shape[1]:
        return float("nan")
    spread = float(((y - y.mean()) ** 2).sum())
    rest = y - terms @ np.linalg.lstsq(terms, y, rcond=None)[0]
    return float((rest**2).sum() / spread) if spread > 0 else 0.0


def _centred(values: np.ndarray) -> np.ndarray:
    spread = np.ptp(values)
    return (values - values.mean()) / (spread if spread > 0 else 1.0)


def _neighbours(shape: tuple[int, ...]) -> Callable[[int], list[int]]:
    """A function of a flat cell number that yields those of the cells that touch it along an edge."""
    strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]

    def neighbours(cell: int) -> list[int]:
        indices = np.unravel_index(cell, shape)
        return [
            cell + step * strides[axis]
            for axis, step in product(range(len(shape)), (-1, 1))
            if 0 <= indices[axis] + step < shape[axis]
        ]

    return neighbours
