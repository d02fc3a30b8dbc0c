"""Minima and smoothness around the final models along one, two and three directions (point of the Landscaper paper)."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.landscapes.topology import topology_directions
from drift.runs.run import Run
from figures.axes import model_quality
from figures.gallery import _selected
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting, that kept their last global model"

COST = "a minute per run"


@_selected.each_run("split", "draws")
def data(run: Run, *, points: int = 7, radius: float = 1.0, draws: int = 3, split: str = "test") -> xr.Dataset:
    """minima, second, smad (nats) and roughness over algorithm, seed and rank, the number of directions.

    Args:
        points, radius: Grid points per direction, and the largest coordinate in filter norms.
        draws: Sets of random directions that are averaged.
        split: Samples that the loss is averaged over.
    """
    ds = run.cached(topology_directions, points=points, radius=radius, draws=draws, split=split)
    return ds.mean("seed", keep_attrs=True)


def draw(ds: xr.Dataset) -> Figure:
    """Three measures by the number of directions, a bar per method."""
    figure, axs = style.panels(1, 3, height=2.4)
    labels = {
        "minima": "minima",
        "smad": style.with_unit("saddle-minimum average\ndistance", ds.smad),
        "roughness": "share of the variance\nthat is not quadratic",
    }
    for ax, (variable, label) in zip(axs.flat, labels.items(), strict=True):
        model_quality.bars(ds[variable], ax=ax, over="rank")
        style.name_axes(ax, "directions", label)
    return style.key(figure, axs.flat)
