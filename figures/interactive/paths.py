"""The path of a run on one plane, played round by round."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from figures.axes.relief import direction, spaced_levels
from figures.interactive.contour_traces import contours, lay_flat
from figures.interactive.look import axis, blank, small
from figures.interactive.slider import Traces, playing
from figures.looks import palette

HEAD = 10
"""Size of the marker at the model of the round that is shown."""


def trajectory_play(ds: xr.Dataset, *, notes: Mapping[int, Mapping[int, str]] | None = None) -> go.Figure:
    """The path of the global model up to a round, and that round's clients, on a map of the loss.

    A slider selects the round and a button plays all of them. The model of the round is the last, largest point of the
    path itself, so that both always move at once. The whole path is drawn pale behind it.

    Args:
        ds: Result of `drift.trajectory_plane`, with clients or without.
        notes: Further lines of the clients' hover texts, by round and number of the client, as
            `figures.interactive.words.client_notes` returns them.

    Raises:
        LookupError: If the map has no values.
    """
    figure = _full_path(ds)
    rounds = [int(number) for number in ds.mark_round.values]
    frames = [_traces(ds, index, (notes or {}).get(number, {})) for index, number in enumerate(rounds)]
    playing(figure, frames, rounds)
    return _name_axes(figure, ds)


def _full_path(ds: xr.Dataset) -> go.Figure:
    """The map and the whole path, pale."""
    figure = blank(height=460, showlegend=False)
    figure.add_trace(contours(ds, "loss", spaced_levels([ds.loss], log=True)))
    pale = {"color": "rgba(255,255,255,0.75)", "width": 1.5, "dash": "dot"}
    x, y = small(ds.mark_alpha), small(ds.mark_beta)
    return figure.add_trace(go.Scatter(x=x, y=y, mode="lines", line=pale, hoverinfo="skip", name="whole path"))


def _name_axes(figure: go.Figure, ds: xr.Dataset) -> go.Figure:
    lay_flat(figure, ds, "loss")
    for name, update in (("alpha", figure.update_xaxes), ("beta", figure.update_yaxes)):
        share = ds.attrs.get(f"explained_{name}")
        update(title=direction(ds, name) + ("" if share is None else f" ({100 * share:.0f} % of the variance)"))
    return figure


def _traces(ds: xr.Dataset, index: int, notes: Mapping[int, str]) -> Traces:
    """The path up to a round, and the clients of that round."""
    until = slice(0, index + 1)
    rounds = ds.mark_round.values[until]
    size = np.full(index + 1, 5)
    size[-1] = HEAD
    path = go.Scatter(
        x=small(ds.mark_alpha.values[until]),
        y=small(ds.mark_beta.values[until]),
        mode="lines+markers",
        line={"color": palette.GLOBAL, "width": 2},
        marker={"color": palette.GLOBAL, "size": small(size), "line": {"color": "white", "width": 1}, "opacity": 1},
        customdata=small(np.stack([rounds, ds.mark_loss.values[until], ds.distance.values[until]], axis=1)),
        hovertemplate=(
            f"global model, round %{{customdata[0]}}<br>{axis(ds.loss)} %{{customdata[1]:.4g}}<br>"
            "distance out of the plane %{customdata[2]:.3g}<extra></extra>"
        ),
        name="global model",
    )
    return [path, _clients(ds, int(rounds[-1]), notes)]


def _clients(ds: xr.Dataset, number: int, notes: Mapping[int, str]) -> go.Scatter:
    """Models of the clients of a round; empty if they were not stored."""
    if "client_alpha" in ds and number in ds["round"].values:
        names = ["client_alpha", "client_beta", "client_distance"]
        positions = ds[names].sel(round=number).dropna("client")
        ids, x, y, off = (positions[name].values for name in ("client", *names))
    else:
        ids, x, y, off = np.zeros((4, 0))
    return go.Scatter(
        x=small(x),
        y=small(y),
        mode="markers",
        marker={"symbol": "triangle-up", "size": 9, "color": "white", "line": {"color": "black", "width": 1}},
        text=[
            f"client {int(client)}, round {number}" + (f"<br>{notes[client]}" if client in notes else "")
            for client in ids
        ],
        customdata=small(off),
        hovertemplate="%{text}<br>distance out of the plane %{customdata:.3g}<extra></extra>",
        name="clients",
    )
