"""The aggregate of a round at any weights, by data size, at equal ones, and the round's end (FedLAW paper, Eq. 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.analyses.landscapes.round_weights import round_weights
from drift.runs.run import Run
from figures.axes import matrices
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
    return result


@style.styled
def draw(ds: xr.Dataset) -> Figure:
    """Weights of the clients; loss and error of the aggregates; error per class against that by size."""
    classes = "class_error" in ds
    factors = (ds.weight * ds.gamma).transpose("mark", "client").values
    if np.allclose(factors[1], factors[2]):  # by size and uniform: one set of weights
        ds = ds.isel(mark=[0, 1, 3])
    figure, axs = style.panels(
        1,
        4 if classes else 3,
        height=2.8,
        stacked=2,
        cell=1.0,
        width_ratios=(1.4, 0.8, 0.8, 1.6)[: 4 if classes else 3],
    )
    _weights(ds, axs[0, 0])
    for ax, name in zip(axs[0, 1:3], ("loss", "error"), strict=True):
        if name not in ds:
            ax.set_axis_off()
            continue
        positions = np.arange(ds.sizes["mark"])
        bars = ax.bar(positions, ds[name].values, color=_COLOURS[: len(positions)], edgecolor="black", linewidth=0.4)
        look: dict[str, Any] = {"fontsize": style.small(), "rotation": 90, "path_effects": style.outline()}
        ax.bar_label(bars, fmt="{:.3g}", label_type="center", **look)
        matrices.name_ticks(ax.xaxis, [str(name) for name in ds.mark.values])
        ax.tick_params(axis="x", labelrotation=90)
        style.name_axes(ax, "weights", style.text(ds[name]))
    if classes:
        _classes(ds.class_error, axs[0, 3])
    return figure


def _classes(errors: xr.DataArray, ax: Axes) -> None:
    """Errors of the classes against those at weights by size, in points."""
    points = 100 * (errors - errors.isel(mark=1)).drop_isel(mark=1)
    top = float(abs(points).max()) or 1.0
    points = points.assign_attrs(long_name="error of the class, minus that by size", units="points")
    matrices.matrix(points, ax=ax, low=-top, high=top, cmap=style.SIGNED, aspect="auto")
    ax.set_ylabel("")


def _weights(ds: xr.Dataset, ax: Axes) -> None:
    """A line of markers per set of weights."""
    positions = np.arange(ds.sizes["client"])
    for mark, colour, symbol in zip(map(str, ds.mark.values), _COLOURS, "osv^", strict=False):
        values = ds.weight.sel(mark=mark).values
        if np.isfinite(values).any():
            factor = float(ds.gamma.sel(mark=mark))
            label = mark if factor == 1 else rf"{mark}, $\gamma$ = {factor:.3g}"
            ax.plot(positions, values, symbol, color=colour, label=label, markersize=4, markeredgecolor="black")
    matrices.name_ticks(ax.xaxis, [str(client) for client in ds.client.values])
    ax.legend(fontsize=style.small(), loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=1)
    style.name_axes(ax, "client", style.text(ds.weight))


_COLOURS = ("#D55E00", "#0072B2", "#56B4E9", "#999999")
"""Of the marks in their order."""
