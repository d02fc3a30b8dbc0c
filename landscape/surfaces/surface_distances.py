"""Distances between surfaces: of their persistence diagrams, and of their shapes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from itertools import combinations

import numpy as np
import xarray as xr

from landscape.results.labelled import labelled
from landscape.surfaces.aligned_distance import aligned_distance
from landscape.surfaces.persistence import basin_diagram, bottleneck, wasserstein


def surface_distances(planes: Mapping[str, xr.Dataset], *, metric: str = "loss") -> xr.Dataset:
    """Distances between all pairs of planes, such as those of several rounds or methods.

    Args:
        planes: Planes by name, as `surface` returns them.
        metric: Variable of all.

    Returns:
        Dataset over mark and mark_other, in the metric's unit: wasserstein and bottleneck, of the persistence diagrams
        of their basins (`landscape.surfaces.persistence`; bottleneck is NaN where GUDHI is not installed), and aligned,
        the root mean square difference at the best rotation (`landscape.surfaces.aligned_distance`).

    Raises:
        ValueError: If there are fewer than two planes.
    """
    if len(planes) < 2:
        raise ValueError(f"{len(planes)} planes are given; distances need two or more.")
    diagrams = {name: basin_diagram(ds, metric=metric) for name, ds in planes.items()}
    measures: dict[str, Callable[[str, str], float]] = {
        "wasserstein": lambda first, second: wasserstein(diagrams[first], diagrams[second]),
        "aligned": lambda first, second: aligned_distance(planes[first], planes[second], metric=metric),
    }
    if importlib.util.find_spec("gudhi"):
        measures["bottleneck"] = lambda first, second: bottleneck(diagrams[first], diagrams[second])
    names, units = list(planes), next(iter(planes.values()))[metric].attrs.get("units", "1")
    tables = {measure: np.full((len(names), len(names)), np.nan) for measure in _ABOUT}
    for measure, distance in measures.items():
        np.fill_diagonal(tables[measure], 0.0)
        for (i, first), (j, second) in combinations(enumerate(names), 2):
            tables[measure][i, j] = tables[measure][j, i] = distance(first, second)
    variables = {name: (("mark", "mark_other"), table, _ABOUT[name], units) for name, table in tables.items()}
    return labelled(
        variables, {"analysis": "surface_distances", "source": "this project"}, {"mark": names, "mark_other": names}
    )


_ABOUT = {
    "wasserstein": "Wasserstein distance of the basins",
    "bottleneck": "bottleneck distance of the basins",
    "aligned": "difference at the best rotation",
}
