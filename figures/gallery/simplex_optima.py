"""Best weights of three clients over rounds, on the loss over all their weights (FedLAW paper, Fig. 12)."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.analyses.landscapes.weight_simplex import best_weights, shared_rounds, weight_simplex
from drift.analyses.per_round import evenly_spaced
from drift.runs.run import Run
from figures.axes import surfaces, triangles
from figures.gallery import _runs, _selected
from figures.looks import style
from landscape.geometry.simplex import on_triangle

NEEDS = "one run that kept the same three clients in several rounds, best one with full participation"

COST = "a minute per run"


@_selected.one_run
def data(
    run: Run, *, round: int | None = None, rounds: int = 20, step: float = 0.05, extend: float = 0.2
) -> xr.Dataset:
    """loss (nats) over alpha and beta of one round; best_weight and size_weight over round and client.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        round: Whose landscape is shown; by default the middle one of those looked at.
        rounds: Most rounds that the best weights are looked for in.
        step: Of the weights.
        extend: How far below 0 weights may go.
    """
    _runs.rounds_with_clients(run, least=3)
    clients, shared = shared_rounds(run)
    if len(shared) < min(ENOUGH, rounds):
        command = "fedscape train digits-shards2 --set keep.clients=all --set clients.per_round=20"
        few = f"run {run.name} kept clients {', '.join(map(str, clients))} together in {len(shared)} rounds only"
        raise _runs.missing(f"{few}, and a path takes {min(ENOUGH, rounds)}", command)
    indices = evenly_spaced(shared, rounds)
    shown = indices[len(indices) // 2] if round is None else round
    plane = run.cached(weight_simplex, round=shown, clients=clients, step=step, extend=extend)
    path = run.cached(best_weights, rounds=indices, clients=clients, step=step, extend=extend)
    if not np.isfinite(path.covariance.values).any():  # one round has no spread
        path = path.drop_vars("covariance")
    ds = path.drop_attrs(deep=False).merge(plane[["loss", "mark_alpha", "mark_beta", "mark_loss"]])
    return ds.assign_attrs(shown=shown, label=run.label)


ENOUGH = 8
"""Rounds below which no path is drawn, unless fewer are asked for."""


def draw(ds: xr.Dataset) -> Figure:
    """The landscape with the path of the best weights and one standard deviation; what the best weights would save."""
    figure, axs = style.panels(1, 2, height=3.1, width_ratios=(1.25, 1), cell=0.78)
    ax = axs[0, 0]
    levels = surfaces.common_levels(ds.loss)
    triangles.triangle(ds, ax=ax, levels=levels)
    triangles.optima(ds, ax=ax)
    path = ds.best_weight.transpose("round", "client").dropna("round")
    for weights, down in ((path[0], 2), (path[-1], -9)) if path.sizes["round"] > 1 else ():
        at = on_triangle(float(weights[0]), float(weights[1]))
        note = ax.annotate(f"round {int(weights['round'])}", at, (5, down), textcoords="offset points", zorder=8)
        note.set(path_effects=style.outline(), fontsize=style.small())
    names = " and ".join(map(str, ds.client.values)).replace(" and ", ", ", 1)
    ax.set_title(
        f"{style.label(ds.attrs['label'])}, clients {names}, round {ds.attrs['shown']}",
        fontsize=style.small(),
        pad=15,  # the third client's name stands above the map
    )
    surfaces.colorbar(figure, [ax], levels, style.text(ds.loss))
    _losses(ds, axs[0, 1])
    return style.key(figure, axs.flat)


def _losses(ds: xr.Dataset, ax: Axes) -> None:
    """Loss under the weights by size and under the best ones, in the colours of the rounds."""
    known = (ds.best_loss.notnull() & ds.size_loss.notnull()).values
    losses = ds[["best_loss", "size_loss"]].isel(round=known)
    colour = style.colour(ds.attrs["label"])
    ax.plot(losses["round"], losses.size_loss, "--", color=colour, label="loss, weights by size")
    ax.plot(losses["round"], losses.best_loss, "-", color=style.GLOBAL, linewidth=0.8, label="loss, best weights")
    dots: dict[str, Any] = {"s": 18, "edgecolors": "white", "linewidths": 0.5, "zorder": 5}
    ax.scatter(losses["round"], losses.best_loss, color=triangles.by_round(ds["round"], known), **dots)
    loss = ds.best_loss.assign_attrs(long_name="loss of the average")
    style.name_axes(ax, "round (colours as on the triangle)", style.text(loss), integers=5)
    style.logarithmic(ax)
