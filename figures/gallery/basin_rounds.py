"""Basins on the planes through three clients in numbers, over rounds (planes of the IMA paper, section 3.2)."""

from collections.abc import Sequence

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.analyses.landscapes.basin import basin_rounds
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _runs, _stack
from figures.looks import style

NEEDS = "runs of any methods with three or more clients per round, trained in one setting, that kept clients of rounds"

COST = "a minute per run"

_SHOWN = ("climb", "excess", "offset", "radius", "area", "curvature", "offset_error", "located")


def data(
    runs: Sequence[Run], *, rounds: int = 5, models: str = "clients", rise: float = 0.1, points: int = 21
) -> xr.Dataset:
    """climb and excess (nats), offset with its error, radius, area, curvature over algorithm, seed and round.

    The offset is NaN where the minimum is not inside the plane (located is 0).

    Args:
        rounds: How many rounds are evaluated, evenly spaced among those that kept their models.
        models: What the planes go through: "clients" of a round, or "globals" of three.
        rise: Height above the minimum (nats) within which radius and area are taken.
        points: Grid points per axis.
    """
    comparable = _runs.select_comparable(runs)
    least, what, why = 2 * (models == "globals"), "no run kept rounds with three models", "it kept no rounds with three"
    selected = _runs.select_suited(
        comparable,
        lambda run: len(run.kept(models)) > least and run.experiment.clients.per_round >= 3,
        what=what,
        command=f"fedscape train digits-shards2 --set keep.{models}=all",
        why=f"{why} models",
    )

    def compute(run: Run) -> xr.Dataset:
        stored = _runs.kept_clients(run) if models == "clients" else run.kept(models)[2:]
        indices = _runs.rounds_among(stored, rounds)
        basins = run.cached(basin_rounds, rounds=indices, models=models, rise=rise, points=points)
        return basins[list(_SHOWN)].sel(rank=1, drop=True)

    return _stack.stack_runs(selected, compute).assign_attrs(rise=rise, models=models)


def draw(ds: xr.Dataset) -> Figure:
    """Six statistics, one line per method; bars at the offset are standard errors, of the mean over seeds.

    Where no line between the models climbs, the title says so in place of a panel. Scales of more than a factor of 20
    are logarithmic, so that no method hides the others.
    """
    unit = str(ds.climb.attrs.get("units", "1")).removeprefix("1")
    rise = f"{ds.attrs['rise']:g} {unit}".strip()
    labels = {
        "climb": style.with_unit("climb between the models", ds.climb),
        "excess": style.with_unit("mean model above the minimum", ds.excess),
        "offset": "distance from the mean model to the minimum",
        "radius": f"radius around the mean model within {rise}",
        "area": f"area within {rise} of the minimum",
        "curvature": "curvature at the minimum",
    }
    note = ""
    if float(abs(ds.climb).max()) <= NO_CLIMB:
        del labels["climb"]
        note = f"no line between the models climbs by more than {NO_CLIMB:g} {unit}".rstrip()
    figure, axs = style.panels(2, 3, height=4.0, stacked=2, cell=0.75)
    for ax in axs.flat[len(labels) :]:
        ax.set_axis_off()
    for ax, variable in zip(axs.flat, labels, strict=False):
        log = variable in ("area", "curvature") or _spans(ds[variable])
        if variable == "offset":
            _offsets(ds, ax)
        else:
            positive = bool((ds[variable].fillna(1) > 0).all())
            curves.curve(ds, ax=ax, variable=variable, marker="o", markersize=2.5, log=log and positive)
        style.name_axes(ax, "round", labels[variable])
    return style.key(figure, axs.flat, title="; ".join(filter(None, (note, curves.band(ds)))))


NO_CLIMB = 1e-3
"""Climb, nats, up to which a line counts as level."""


def _spans(values: xr.DataArray) -> bool:
    """Whether the largest value is more than 20 times the smallest."""
    low, high = float(values.min()), float(values.max())
    return low > 0 and high > 20 * low


def _offsets(ds: xr.Dataset, ax: Axes) -> None:
    """Offsets with bars of one standard error, and a note on the planes without a minimum inside."""
    if bool(ds["offset"].notnull().any()):
        curves.curve(ds, ax=ax, variable="offset", marker="o", markersize=2.5)
    for name, series in curves.split_algorithms(ds["offset"]):
        error = ds["offset_error"].sel(algorithm=name)
        count = error.notnull().sum("seed")
        bars = (error**2).sum("seed") ** 0.5 / count.where(count > 0)
        ax.errorbar(
            ds["round"], series.mean("seed"), yerr=bars, fmt="none", color=style.colour(str(name)), elinewidth=0.7
        )
    absent, planes = int((ds["located"] == 0).sum()), int(ds["located"].notnull().sum())
    if absent:
        note = f"minimum not inside {absent} of {planes} planes"
        ax.set_title(note, fontsize=style.small())
