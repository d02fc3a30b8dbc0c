"""The aggregate of a round at any weights, by data size, at equal ones, and the round's end (FedLAW paper, Eq. 2)."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.analyses.landscapes.round_weights import round_weights
from drift.runs.run import Run
from figures.axes import curves, matrices
from figures.gallery import _runs, _selected
from figures.looks import style

NEEDS = "one run that kept the clients of a round"

COST = "seconds"


@_selected.one_run
def data(
    run: Run,
    *,
    round: int | None = None,
    weights: Sequence[float] | None = None,
    gamma: float = 1.0,
    split: str = "test",
    samples: int | None = None,
) -> xr.Dataset:
    """loss (nats) and error over mark, class_error over mark and class, and weight over mark and client.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        round: By default the last one that kept its clients.
        weights: Of the cohort, ids ascending, scaled to sum 1; by default those of the round.
        gamma: Factor of the aggregate.
        split, samples: What it is evaluated on, as in `drift.round_weights`.
    """
    stored = _runs.rounds_with_clients(run)
    index = stored[-1] if round is None else round
    options = {"weights": None if weights is None else [float(value) for value in weights], "gamma": float(gamma)}
    result = run.cached(round_weights, round=index, split=split, samples=samples, **options)
    factors = (result.weight * result.gamma).dropna("mark", how="all")
    if weights is None and gamma == 1 and np.allclose(factors, factors[0]):
        equal = f"weights by size, uniform and used in round {index} of run {run.name} are equal; give weights=[...]"
        raise _runs.missing(equal, "fedscape train common-fmnist --set method=fedlaw")
    names = {"these": "of the round" if weights is None else "given", "end": "round's end"}
    return result.assign_coords(mark=[names.get(name, name) for name in result.mark.values.tolist()])


@style.styled
def draw(ds: xr.Dataset) -> Figure:
    """Weights of the clients, with loss and error of the aggregates; error per class against that by size."""
    factors, losses = (ds.weight * ds.gamma).transpose("mark", "client").values, ds.loss.values
    alike = np.allclose(factors[1], factors[2]), np.isclose(losses[0], losses[3])  # uniform as by size, end as weighted
    ds = ds.isel(mark=[0, 1, *(index for index, same in zip((2, 3), alike, strict=True) if not same)])
    figure, axs = style.panels(1, 1 + ("class_error" in ds), height=2.8, cell=0.5)
    _weights(ds, axs[0, 0])
    if "class_error" in ds:
        _classes(ds.class_error, axs[0, 1])
    return figure


def _classes(errors: xr.DataArray, ax: Axes) -> None:
    """Errors of the classes minus those at weights by size, in points."""
    points = 100 * (errors - errors.isel(mark=1)).drop_isel(mark=1)
    positions, wide = np.arange(errors.sizes["class"]), 0.8 / points.sizes["mark"]
    for index, mark in enumerate(map(str, points.mark.values)):
        colour = _COLOURS[errors.mark.values.tolist().index(mark)]
        ax.bar(positions + (index + 0.5) * wide - 0.4, points.sel(mark=mark), wide, color=colour, edgecolor="black")
    curves.mark_level(ax)
    matrices.name_ticks(ax.xaxis, [style.literal(name) for name in errors["class"].values])
    first = points.isel(mark=0).fillna(0).to_series()
    ends = f"{first.idxmax()} {first.max():+.3g}, {first.idxmin()} {first.min():+.3g}"
    ax.set_title(style.literal(f"{points.mark.values[0]}: {ends}"), fontsize=style.small())
    style.name_axes(ax, style.text(errors["class"]), "error of the class,\nminus that by size [points]")


def _weights(ds: xr.Dataset, ax: Axes) -> None:
    """A line of markers per set of weights, clients by the first one; a stem from the weight by size to that one."""
    ds = ds.isel(client=np.argsort(ds.weight.isel(mark=0).values, kind="stable"))
    positions, (first, size) = np.arange(ds.sizes["client"]), ds.weight.isel(mark=[0, 1]).transpose("mark", "client")
    ax.vlines(positions, size, first, color=_COLOURS[0], linewidth=1.2)
    for mark, colour, symbol in zip(map(str, ds.mark.values), _COLOURS, "osv^", strict=False):
        values = ds.sel(mark=mark)
        label = mark if not abs(values.gamma - 1) >= 5e-4 else rf"{mark}, $\gamma$ = {float(values.gamma):.3g}"
        label += f": loss {float(values.loss):.3g}" + (
            f", error {100 * float(values.error):.3g} %" if "error" in values else ""
        )
        ax.plot(positions, values.weight, symbol, color=colour, label=label, markersize=4, markeredgecolor="black")
    matrices.name_ticks(ax.xaxis, [str(client) for client in ds.client.values])
    ax.legend(fontsize=style.small(), loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=1)
    above = f"{int((first > size + 1e-6).sum())} of {len(positions)} above that by size"
    style.name_axes(ax, f"client, by weight: {above}", r"relative weight $\lambda$")


_COLOURS = ("#D55E00", "#0072B2", "#56B4E9", "#999999")
"""Of the marks in their order."""
