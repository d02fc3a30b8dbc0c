"""The clients of a round: length and cosines of updates, losses, labels (cosines as in FedLAW paper, Def. 5.1)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.analyses.rounds.cohort_table import cohort_table
from drift.analyses.samples.client_losses import client_losses
from drift.runs.run import Run
from figures.axes import class_labels, matrices
from figures.axes.placed_text import spread_names
from figures.gallery import _runs, _selected
from figures.interactive.words import label_shares
from figures.looks import style
from figures.looks.layout import fitting

NEEDS = "one run of any method; losses need the clients of the round"

COST = "seconds"


@_selected.one_run
def data(
    run: Run, *, round: int | None = None, clients: Sequence[int] | None = None, losses: bool = True
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
    if absent := sorted(set(clients or ()) - set(ids)):
        raise LookupError(f"client {absent[0]} is not in round {index} of run {run.name}; its clients: {ids}.")
    selected = np.isin(ids, list(clients or ())).astype(float)
    ds["selected"] = ("client", selected, {"long_name": "selected client", "units": "1"})
    return ds


@style.styled
def draw(ds: xr.Dataset) -> Figure:
    """Lengths against cosines with the mean, cosines of pairs; below them losses before and after, and labels.

    More than `MANY` clients are in order of their most common class, where it is known.
    """
    ds, groups = _ordered(ds)
    below = [name for name in ("own_loss", "class_share") if name in ds]
    figure, axs = style.panels(2 if below else 1, 2, height=5.0 if below else 2.6, cell=0.36)
    _updates(ds, axs[0, 0])
    narrow = style.is_narrow()
    pairs = matrices.matrix(ds.cosine, ax=axs[0, 1], low=-1, high=1, cmap=style.SIGNED, bar=not narrow)
    if narrow:  # a bar beside the matrix would take its width from all panels
        pairs.get_subplotspec().get_gridspec().set_height_ratios([1.4, 1.7, 0.9, 0.9][: axs.size])  # type: ignore[union-attr]
        figure.colorbar(pairs.images[0], ax=pairs, location="bottom", aspect=30, label=style.text(ds.cosine))
    free = list(axs[1]) if below else []
    cosines = ds.cosine.values[np.triu_indices(ds.sizes["client"], 1)]
    pairs.set_title("\n" * narrow + f"{(cosines > 0).sum()} of {cosines.size} pairs agree", fontsize=style.small())
    for name, ax in zip(below, free, strict=False):
        (_losses if name == "own_loss" else _labels)(ds, ax)
    if groups:
        for axis in (pairs.xaxis, pairs.yaxis, *(ax.xaxis for ax in free[: len(below)])):
            matrices.name_ticks(axis, list(groups), list(groups.values()))
            axis.set_label_text("clients by their most common class")
    for ax in free[len(below) :]:
        ax.set_axis_off()
    return figure


def _ordered(ds: xr.Dataset) -> tuple[xr.Dataset, dict[str, float]]:
    """The clients of a large cohort by most common class, second class and share; the middle place of each class."""
    if ds.sizes["client"] <= MANY or ds.sizes.get("class", 0) < 2:
        return ds, {}
    shares = ds.class_share.transpose("client", "class").fillna(0).values
    common, second = (-shares).argsort(axis=1, kind="stable")[:, :2].T
    second = np.where(shares.max(axis=1) == 1, -1, second)
    order = np.lexsort((-shares.max(axis=1), second, common))
    names = [str(name) for name in ds["class"].values]
    middles = {names[number]: np.flatnonzero(common[order] == number).mean() for number in np.unique(common)}
    return ds.isel(client=order, client_other=order), middles


def _updates(ds: xr.Dataset, ax: Axes) -> None:
    """One circle per client, its area by weight where these differ; selected ones are filled. Of many, small dots."""
    weights = ds.relative_weight.fillna(0).clip(0).values
    uneven = float(np.ptp(weights)) > 1e-9
    sizes = (15 + 130 * (weights / weights.max() if uneven else 0 * weights)) * min(1, MANY / len(weights))
    picked, many = ds.selected.values > 0, len(weights) > MANY
    plain: dict[str, Any] = {"facecolor": "none", "edgecolor": "black"}
    marked = plain | {"facecolor": style.CLIENT}
    if many:
        plain = {"facecolor": "black", "edgecolor": "none", "alpha": 0.4}
        marked = {"facecolor": "white", "edgecolor": "black", "linewidth": 1.5, "zorder": 3}
        sizes[picked] = 30
    for mask, look in ((~picked, plain), (picked, marked)):
        ax.scatter(ds.cosine_mean.values[mask], ds.update_norm.values[mask], sizes[mask], **look)
    ax.margins(0.12, 0.4 if style.is_narrow() else 0.12)
    if len(weights) <= NAMED:
        _names(ds, ax)
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    against, area = int((ds.cosine_mean < 0).sum()), "; area: weight" * uneven
    ax.set_title(f"{against} of {len(weights)} updates point against the mean{area}", fontsize=style.small())
    style.name_axes(ax, "cosine with the mean update", style.text(ds.update_norm))


def _names(ds: xr.Dataset, ax: Axes) -> None:
    """The clients' numbers beside their circles, clear of each other."""
    ax.autoscale_view()
    points = np.stack([ds.cosine_mean.values, ds.update_norm.values], 1)
    places, names = ax.transData.transform(points), [str(client) for client in ds.client.values]
    dot = ax.get_figure(root=True).dpi / 72  # type: ignore[union-attr]
    tall = 1.4 * style.small() * dot
    offsets = (spread_names(places, [0.4 * tall * len(name) for name in names], tall) - places) / dot
    for name, point, offset, picked in zip(names, points, offsets, ds.selected.values > 0, strict=True):
        look: dict[str, Any] = {"fontsize": style.small(), "fontweight": "bold" if picked else "normal"}
        note = ax.annotate(name, point, offset, textcoords="offset points", ha="center", va="center", **look)
        note.set_path_effects(style.outline())


def _losses(ds: xr.Dataset, ax: Axes) -> None:
    """Loss on each client's own data: before the round, of its own model, after the round."""
    positions = np.arange(ds.sizes["client"])
    many = len(positions) > MANY
    for (name, marker, label), shade in zip(_LOSSES, ("0.8", "black", "0.5"), strict=True):
        look: dict[str, Any] = {"color": "black", "markersize": 4, "fillstyle": "none"}
        if many:
            look = {"color": shade, "markersize": 1.5}
        ax.plot(positions, ds[name], marker, label=label, **look)
    if not many:
        ax.vlines(positions, ds.own_loss, ds.end_own_loss, color=style.CLIENT, linewidth=0.8, zorder=1)
    style.logarithmic(ax)
    ax.legend(markerscale=3 if many else 1, loc="lower right", bbox_to_anchor=(1, 1), ncols=3)
    matrices.name_ticks(ax.xaxis, [str(client) for client in ds.client.values])
    ax.set_xlabel("client")
    ax.set_ylabel(f"loss on its own data [{ds.own_loss.attrs['units']}]")


def _labels(ds: xr.Dataset, ax: Axes) -> None:
    """Stacked bars of the classes that each client trains on."""
    by_position = ds[["class_share"]].assign_coords(client=np.arange(ds.sizes["client"]))
    class_labels.class_bars(by_position, ax=ax, variable="class_share", over="client")
    matrices.name_ticks(ax.xaxis, [str(client) for client in ds.client.values])
    if ds.sizes["class"] <= 12 and ax.containers:
        where: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1, 0.5), "title": "class"}
        if style.is_narrow():
            across = fitting([str(name) for name in ds["class"].values], style.width(), 3)
            where = {"loc": "upper right", "bbox_to_anchor": (1, 0), "borderaxespad": 4, "ncols": across}
        ax.legend(fontsize=style.small(), title_fontsize=style.small(), **where)


NAMED, MANY = 30, 100
"""Clients up to which each is named, and up to which each has marks and a place of its own."""

_LOSSES = (("start_own_loss", "s", "before"), ("own_loss", "v", "its own model"), ("end_own_loss", "o", "after"))
