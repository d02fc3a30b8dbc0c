"""Minima, lowest passes and smoothness of the planes of clients over rounds (measures of the Landscaper paper)."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from drift.analyses import per_round
from drift.analyses.landscapes.topology import topology_rounds
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _runs, _selected
from figures.gallery.basin_rounds import NO_CLIMB
from figures.looks import style

NEEDS = "runs of any methods with three or more clients per round, trained in one setting, that kept clients of rounds"

COST = "a minute per run"

STRIDES = (1, 2, 4)


@_selected.each_run(
    "split",
    select=_selected.suited(
        lambda run: run.kept("clients", least=3),
        what="no run kept rounds with three clients",
        command=_runs.KEEP_CLIENTS,
        why="it kept no round with three clients",
    ),
)
def data(run: Run, *, rounds: int = 5, points: int = 25, split: str = "test") -> xr.Dataset:
    """minima, second, smad, climb (nats) and roughness over algorithm, seed, round and value, the stride of the grid.

    Args:
        rounds: How many rounds are evaluated, evenly spaced among those that kept their clients.
        points: Grid points per axis of the finest grid; coarser ones take every second and every fourth.
        split: Samples that the loss is averaged over.
    """
    indices = per_round.evenly_spaced(run.kept("clients", least=3), rounds)
    return run.cached(topology_rounds, rounds=indices, points=points, strides=STRIDES, split=split)


def draw(ds: xr.Dataset) -> Figure:
    """Four measures, one line per method: the finest grid drawn through, the coarsest in dashes."""
    figure, axs = style.panels(2, 2, height=3.9, sharex=True)
    labels = {
        "minima": "minima",
        "smad": style.with_unit("saddle-minimum average\ndistance", ds.smad),
        "climb": style.with_unit("largest climb between\ntwo clients", ds.climb),
        "roughness": "share of the variance\nthat is not quadratic",
    }
    strides = ds["value"].values
    if float(abs(ds.climb).max()) <= NO_CLIMB:
        del labels["climb"]
        style.sentence(axs[1, 1], f"no line between two clients climbs by more than {NO_CLIMB:g} nats")
        axs[0, 1].tick_params(labelbottom=True)
    for ax, (variable, label) in zip(axs.flat, labels.items(), strict=False):
        curves.curve(ds.sel(value=strides[0]), ax=ax, variable=variable, marker="o", markersize=2.5)
        for name, series in curves.split_algorithms(ds[variable].sel(value=strides[-1])):
            if bool(series.notnull().any()):
                colour = style.colour(str(name))
                ax.plot(series["round"], curves.mean(series, "seed"), "--", color=colour, linewidth=0.8)
        style.name_axes(ax, "round", label)
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    axs[0, 0].yaxis.set_major_locator(MaxNLocator(4, integer=True))
    note = f"dashed: one point in {strides[-1]} along each axis"
    return style.key(figure, axs.flat, title="; ".join(filter(None, (curves.band(ds), note))))
