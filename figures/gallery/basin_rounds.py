"""Basins on the planes through three clients in numbers, over rounds (planes of the IMA paper, section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift import terrain
from drift.basin import basin_rounds
from drift.run import Run
from figures import curves, style
from figures.gallery import _stack

NEEDS = "runs of any methods with three clients a round or more, trained in one setting, that kept clients of rounds"

COST = "a minute a run"

_SHOWN = ("climb", "excess", "offset", "radius", "area", "curvature")


def data(
    runs: Sequence[Run], *, rounds: int = 5, models: str = "clients", rise: float = 0.1, points: int = 21
) -> xr.Dataset:
    """climb and excess (nats), offset, radius, area, curvature over algorithm, seed and round.

    Args:
        rounds: How many rounds are looked at, evenly spread over those that kept their models.
        models: What the planes go through: "clients" of a round, or "globals" of three.
        rise: Height above the minimum (nats) within which radius and area are taken.
        points: Grid points an axis.
    """
    chosen = [run for run in _stack.comparable(runs) if len(run.kept(models)) > 2 * (models == "globals")]
    if not chosen or chosen[0].experiment.clients.per_round < 3:
        command = f"fedscape train digits-shards2 --set keep.{models}=all"
        raise LookupError(_stack.absent("no run kept rounds with three models", command))

    def compute(run: Run) -> xr.Dataset:
        kept = run.kept(models)
        indices = terrain.spread(kept if models == "clients" else kept[2:], rounds)
        found = run.cached(basin_rounds, rounds=indices, models=models, rise=rise, points=points)
        return found[list(_SHOWN)].sel(rank=1, drop=True)

    return _stack.stacked(chosen, compute).assign_attrs(rise=rise, models=models)


@style.styled
def draw(ds: xr.Dataset) -> Figure:
    """Six statistics, a line a method."""
    figure, axs = style.panels(2, 3, height=4.0, sharex=True)
    rise = f"{ds.attrs['rise']:g} nats"
    labels = {
        "climb": "climb between\nthe models [nats]",
        "excess": "mean model above\nthe minimum [nats]",
        "offset": "distance from the mean\nmodel to the minimum",
        "radius": f"radius around the mean\nmodel within {rise}",
        "area": f"area within {rise}\nof the minimum",
        "curvature": "curvature at the minimum",
    }
    for ax, (variable, label) in zip(axs.flat, labels.items(), strict=True):
        log = variable in ("area", "curvature") and bool((ds[variable].fillna(1) > 0).all())
        curves.curve(ds, ax=ax, variable=variable, marker="o", markersize=2.5, log=log)
        ax.set_ylabel(label)
        ax.set_xlabel("round")
    axs[0, 0].set_ylim(-0.005, max(0.05, axs[0, 0].get_ylim()[1]))
    style.key(figure, axs.flat, title=curves.band(ds))
    return figure
