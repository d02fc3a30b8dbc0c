"""The clients of a round: length and cosines of updates, losses, labels (cosines as in FedLAW paper, Def. 5.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.analyses.rounds.cohort_table import cohort_table
from drift.analyses.samples.client_losses import client_losses
from drift.runs.run import Run
from figures import style
from figures.axes import drifts, matrices
from figures.gallery import _runs, _stack
from figures.interactive.words import label_shares

NEEDS = "one run of any method; losses need the clients of the round"

COST = "seconds"


def data(
    runs: Sequence[Run],
    *,
    method: str | None = None,
    seed: int | None = None,
    round: int | None = None,
    clients: Sequence[int] | None = None,
    losses: bool = True,
) -> xr.Dataset:
    """update_norm, cosine_mean, weight and samples over client; cosine over client and client_other (all fractions).

    Also the losses of clients on their own data (own_loss, start_own_loss, end_own_loss, nats), where the round kept
    its clients, and their labels (class_share over client and class), where they are known.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        round: By default the last one.
        clients: Selected clients, whose names are bold; none by default.
        losses: Whether losses are shown.
    """
    run = _runs.one_run(runs, method, seed)
    index = run.require_round(-1 if round is None else round)
    ds = run.cached(cohort_table, round=index)
    ids = ds.client.values.tolist()
    if not ids:
        raise _runs.missing(
            f"every client of round {index} of run {run.name} diverged", "fedscape train digits-shards2"
        )
    if losses and index in run.kept("clients"):
        extra = run.cached(client_losses, round=index)
        ds = ds.assign({name: extra[name] for name in ("loss", "own_loss", "start_own_loss", "end_own_loss")})
    if (shares := label_shares(run, index)) is not None:
        about = {"long_name": "share of the class in the client's data", "units": "fraction"}
        ds["class_share"] = (("client", "class"), shares[ids], about)
        ds = ds.assign_coords({"class": [str(name) for name in run.dataset.classes]})
    selected = np.isin(ids, [] if clients is None else list(clients)).astype(float)
    ds["selected"] = ("client", selected, {"long_name": "selected client", "units": "1"})
    return _stack.name_runs(ds, [run])


@style.styled
def draw(ds: xr.Dataset) -> Figure:
    """Lengths against cosines with the mean, cosines of pairs; below them losses before and after, and labels."""
    below = [name for name in ("own_loss", "class_share") if name in ds]
    figure, axs = style.panels(2 if below else 1, 2, height=5.0 if below else 2.6, cell=0.55)
    _updates(ds, axs[0, 0])
    matrices.matrix(ds.cosine, ax=axs[0, 1], low=-1, high=1, cmap=style.SIGNED)
    places = list(axs[1]) if below else []
    for name, ax in zip(below, places, strict=False):
        (_losses if name == "own_loss" else _labels)(ds, ax)
    for ax in places[len(below) :]:
        ax.set_axis_off()
    return figure


def _updates(ds: xr.Dataset, ax: Axes) -> None:
    """One circle per client, its area by weight; selected ones are filled."""
    weights = ds.relative_weight.fillna(0).clip(0).values
    sizes = 15 + 130 * weights / max(float(weights.max()), 1e-12)
    picked = ds.selected.values > 0
    for mask, colour in ((~picked, "none"), (picked, style.CLIENT)):
        ax.scatter(
            ds.cosine_mean.values[mask], ds.update_norm.values[mask], sizes[mask], facecolor=colour, edgecolor="black"
        )
    for client in ds.client.values if ds.sizes["client"] <= NAMED else []:
        part = ds.sel(client=client)
        place = float(part.cosine_mean), float(part.update_norm)
        note = ax.annotate(str(client), place, (0, 7), textcoords="offset points", fontsize=style.small(), ha="center")
        note.set(fontweight="bold" if float(part.selected) else "normal", path_effects=style.outline())
    ax.margins(0.12)
    ax.set_xlabel(style.text(ds.cosine_mean))
    ax.set_ylabel(style.text(ds.update_norm))


def _losses(ds: xr.Dataset, ax: Axes) -> None:
    """Loss on each client's own data: before the round, of its own model, after the round."""
    places = np.arange(ds.sizes["client"])
    for name, marker, label in _LOSSES:
        ax.plot(places, ds[name], marker, color="black", markersize=4, fillstyle="none", label=label)
    ax.vlines(places, ds.own_loss, ds.end_own_loss, color=style.CLIENT, linewidth=0.8, zorder=1)
    style.logarithmic(ax)
    low, high = ax.get_ylim()
    ax.set_ylim(low, high * (high / low) ** 0.4 if ax.get_yscale() == "log" else high + 0.4 * (high - low))
    ax.legend(loc="upper right")
    matrices.name_ticks(ax.xaxis, [str(client) for client in ds.client.values])
    ax.set_xlabel("client")
    ax.set_ylabel(f"loss on its own data [{ds.own_loss.attrs['units']}]")


def _labels(ds: xr.Dataset, ax: Axes) -> None:
    """Stacked bars of the classes that each client trains on."""
    places = ds[["class_share"]].assign_coords(client=np.arange(ds.sizes["client"]))
    drifts.mixture(places, ax=ax, variable="class_share", over="client")
    matrices.name_ticks(ax.xaxis, [str(client) for client in ds.client.values])
    if ds.sizes["class"] <= 12 and ax.containers:
        ax.legend(
            fontsize=style.small(),
            ncols=1,
            loc="center left",
            bbox_to_anchor=(1, 0.5),
            title="class",
            title_fontsize=style.small(),
        )


NAMED = 30
"""Clients up to which each is named."""

_LOSSES = (
    ("start_own_loss", "s", "model before the round"),
    ("own_loss", "v", "the client's model"),
    ("end_own_loss", "o", "model after the round"),
)
