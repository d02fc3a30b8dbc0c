"""Minima, lowest passes and smoothness of the planes of clients over rounds (measures of the Landscaper paper)."""

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
    indices = per_round.evenly_spaced(_runs.kept_clients(run, least=3), rounds)
    return run.cached(topology_rounds, rounds=indices, points=points, strides=STRIDES, split=split)


def draw(ds: xr.Dataset) -> Figure:
    """Measures on the finest grid, one line per method; above them how many planes have one minimum."""
    labels = {
        "minima": "minima",
        "smad": style.with_unit("saddle-minimum average\ndistance", ds.smad),
        "climb": style.with_unit("largest climb between\ntwo clients", ds.climb),
        "roughness": "share of the variance\nthat is not quadratic",
    }
    single, count = (ds.minima == 1).sum(set(ds.minima.dims) - {"value"}), ds.minima.isel(value=0).notnull().sum()
    about = [f"one minimum on {int(single[0])} of {int(count)} planes ({int(single[-1])} on the coarsest grid)"]
    if float(abs(ds.climb).max()) <= NO_CLIMB:
        del labels["climb"]
        about += [f"no line between two clients climbs by more than {NO_CLIMB:g} nats"]
    if int(single[0]) == int(count):  # one minimum has no saddle
        del labels["minima"], labels["smad"]
    figure, axs = style.panels(2 if len(labels) == 4 else 1, {4: 2}.get(len(labels), len(labels)))
    curves.row(ds.isel(value=0), axs.flat, labels, **curves.DOTS)
    for ax in axs.flat:
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    if "minima" in labels:
        axs[0, 0].yaxis.set_major_locator(MaxNLocator(4, integer=True))
    return style.key(figure, axs.flat, title="; ".join(filter(None, [*about, curves.band(ds)])))
