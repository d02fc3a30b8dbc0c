"""The clients of one round: a cloud to brush, the matrix of their cosines, bars of their labels."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import plotly.graph_objects as go
import xarray as xr
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from figures.interactive.look import axis, bar, blank, log_axis, named, small
from figures.interactive.matrix import cells, square
from figures.interactive.words import plain
from figures.looks import palette

NAMED = 30
"""Clients up to which each is named."""

PICKED = "#D55E00"
"""Colour of selected clients."""

LOSSES = {
    "start_own_loss": ("model before the round", "square", "#56B4E9"),
    "own_loss": ("the client's model", "triangle-down", PICKED),
    "end_own_loss": ("model after the round", "circle", "#333333"),
}
"""Name, symbol and colour of the losses on own data."""


def client_cloud(ds: xr.Dataset, across: str, up: str, selected: Collection[int] = ()) -> go.Figure:
    """One circle per client, its area by its weight; selected ones are filled diamonds. Customdata: the client's id.

    Args:
        ds: Result of `drift.cohort_table`, perhaps with variables of `drift.client_losses`.
        across, up: Variables over client.
        selected: Ids.
    """
    figure = blank(height=340, dragmode="select", showlegend=False)
    picked = np.isin(ds.client.values, list(selected))
    weights = np.nan_to_num(ds.relative_weight.values).clip(0)
    sizes = 9 + 22 * np.sqrt(weights / max(float(weights.max(initial=0)), 1e-12))
    names = [str(client) for client in ds.client.values]
    lines = [_line(ds, index) for index in range(len(names))]
    figure.add_trace(
        go.Scatter(
            x=small(ds[across]),
            y=small(ds[up]),
            customdata=ds.client.values.tolist(),
            text=names if len(names) <= NAMED else None,
            hovertext=lines,
            mode="markers+text" if len(names) <= NAMED else "markers",
            textposition="top center",
            marker={
                "size": small(sizes),
                "symbol": np.where(picked, "diamond", "circle").tolist(),
                "color": np.where(picked, PICKED, palette.CLIENT).tolist(),
                "opacity": 0.85,
                "line": {"width": 1, "color": "white"},
            },
            selected={"marker": {"opacity": 0.95}},
            unselected={"marker": {"opacity": 0.6}},
            hovertemplate="%{hovertext}<extra></extra>",
            cliponaxis=False,
            name="clients",
        )
    )
    figure.update_xaxes(title=axis(ds[across]))
    figure.update_yaxes(title=axis(ds[up]))
    return figure


def cosine_map(ds: xr.Dataset, selected: Collection[int] = (), *, alike: bool = False) -> go.Figure:
    """Cosines between the updates of a cohort; names of selected clients are bold.

    Args:
        ds: Result of `drift.cohort_table`.
        selected: Ids.
        alike: Clients with like updates stand side by side, in place of ascending ids.
    """
    ids = ds.client.values
    order = _alike(ds.cosine.values) if alike else np.argsort(ids)
    values = ds.cosine.values[np.ix_(order, order)]
    names = [str(client) for client in ids[order]]
    hover = "clients %{y} and %{x}<br>cosine %{z:.3f}"
    matrix = cells(names, names, values, "cosine", (-1, 1), hovertemplate=hover, name="cosines")
    ticks = named(names, map(str, selected)) if len(names) <= 2 * NAMED else {}
    return square(blank(height=340).add_trace(matrix), "client", "client", type="category", **ticks)


def label_bars(
    ids: Sequence[int], shares: np.ndarray, classes: Sequence[str], selected: Collection[int] = ()
) -> go.Figure:
    """Stacked bars of the classes that clients train on; a bar's customdata: client and class number.

    Args:
        ids: Ids of the clients.
        shares: Class shares (m, C) of the clients.
        classes: Names of the classes.
        selected: Ids, whose names are bold.
    """
    figure = blank(height=300, barmode="stack", bargap=0.08)
    names = [str(client) for client in ids]
    for index, name in enumerate(classes):
        column = np.nan_to_num(shares[:, index])
        if not column.any():
            continue
        marker = {"color": palette.CLASSES[index % len(palette.CLASSES)], "line": {"width": 0.5, "color": "white"}}
        hover = f"client %{{x}}<br>class {plain(name)}: %{{y:.0%}}"
        custom = [[int(client), index] for client in ids]
        figure.add_trace(bar(names, small(column), plain(name), None, hover, customdata=custom).update(marker=marker))
    figure.update_xaxes(title="client", type="category", **named(names, map(str, selected)))
    figure.update_yaxes(title="share of the class", range=[0, 1], tickformat=".0%")
    figure.update_layout(legend={"orientation": "v", "x": 1.02, "y": 1, "yanchor": "top", "title": {"text": "class"}})
    return figure


def own_losses(ds: xr.Dataset, selected: Collection[int] = ()) -> go.Figure:
    """Loss on each client's own data: before the round, of its own model, after the round. Customdata: client.

    Args:
        ds: Result of `drift.client_losses`.
        selected: Ids, whose names are bold.
    """
    figure = blank(height=300)
    names = [str(client) for client in ds.client.values]
    for name, (label, symbol, colour) in LOSSES.items():
        figure.add_trace(
            go.Scatter(
                x=names,
                y=small(ds[name]),
                customdata=ds.client.values.tolist(),
                mode="markers",
                name=label,
                marker={"symbol": symbol, "size": 10, "color": colour, "line": {"width": 1, "color": "white"}},
                hovertemplate=f"client %{{x}}<br>{label}: %{{y:.4g}}<extra></extra>",
            )
        )
    figure.update_xaxes(title="client", type="category", **named(names, map(str, selected)))
    units = ds.own_loss.attrs.get("units", "1")
    title = "loss on its own data" + (f" [{units}]" if units != "1" else "")
    figure.update_yaxes(log_axis(*(ds[name].values for name in LOSSES)), title=title)
    return figure


def _line(ds: xr.Dataset, index: int) -> str:
    """What hovering tells of a client."""
    client = ds.isel(client=index)
    lines = [f"client {int(client.client)}, {int(client.samples)} samples"]
    shown = [
        name for name in ("update_norm", "cosine_mean", "cosine_step", "relative_weight", "own_loss") if name in ds
    ]
    lines += [f"{plain(axis(client[name]))} {float(client[name]):.4g}" for name in shown]
    return "<br>".join(lines)


def _alike(cosine: np.ndarray) -> np.ndarray:
    """Order in which clients with like updates stand side by side (average linkage of 1 - cosine)."""
    if len(cosine) < 3:
        return np.arange(len(cosine))
    distance = (1 - (cosine + cosine.T) / 2).clip(0)
    np.fill_diagonal(distance, 0)
    return leaves_list(linkage(squareform(distance, checks=False), "average", optimal_ordering=True))
