"""What the explorer shows: the plane of a picked client, and the drift of its run."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import xarray as xr
from plotly.subplots import make_subplots

from drift.analyses.landscapes.overlay_plane import overlay_plane
from drift.analyses.landscapes.planes import round_plane
from drift.analyses.rounds.locality import locality
from drift.runs.run import Run
from figures import palette
from figures.interactive.curves import QUANTITIES
from figures.interactive.look import axis, blank, log_axis, small
from figures.interactive.surfaces import explore_contour

MAPS = {"loss": "test loss", "error": "test error", "client_loss": "loss of the client's own samples"}
"""What the plane shows, and how the picker calls it."""

_PICKED = "#d0006f"
"""Colour of the picked client, that of no method."""

_SIZE = {"width": 470, "height": 440}
"""Of each picture, pixels; a notebook's page has room for two."""


@dataclass(frozen=True)
class Pick:
    """What is shown.

    Args:
        run: One of the runs.
        round: Number of a round.
        client: Id of a client of its cohort; None where the cohort has none.
        shows: One of `MAPS`.
        quantity: One of `figures.interactive.curves.QUANTITIES`.
    """

    run: Run
    round: int
    client: int | None
    shows: str = "loss"
    quantity: str = "accuracy"


def plane(pick: Pick, *, points: int = 15) -> go.Figure:
    """Contour map of the plane through the picked client and the next two of its cohort, the client ringed.

    Raises:
        LookupError: If the round kept no clients, or the run has no data.
        ValueError: If the cohort holds fewer than three clients, or the client is none of it.
    """
    three = _three(pick)
    if pick.shows == "client_loss":
        overlay = pick.run.cached(overlay_plane, round=pick.round, clients=three, points=points)
        overlay = overlay.sel(client=pick.client)
        own = {"loss": overlay.client_loss, "mark_loss": overlay.mark_client_loss}
        ds, variable = overlay.assign(own), "loss"
    else:
        ds, variable = pick.run.cached(round_plane, round=pick.round, clients=three, points=points), pick.shows
    figure = explore_contour(ds, variable)
    figure.update_traces(selector={"type": "contour"}, colorbar_title_text=ds[variable].attrs["units"])
    figure.add_trace(_ring(ds, f"client {pick.client}"))
    title = f"{MAPS[pick.shows]}, round {pick.round}, client {pick.client}"
    return figure.update_layout(_same(title), **_SIZE, uirevision=f"{pick}")


def drift(runs: Mapping[str, Run], pick: Pick) -> go.Figure:
    """A quantity over rounds for all runs, and the distance of every client of the picked run to its cohort's mean.

    Args:
        runs: By name.
        pick: Its run is drawn bold, its round as a line, its client in a colour of its own.
    """
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.09)
    title, values = "", []
    for name, run in runs.items():
        part = QUANTITIES[pick.quantity].part(run)
        title = axis(part)
        values.append(part.values)
        figure.add_trace(_curve(name, run, part, run is pick.run), row=1, col=1)
    log = log_axis(*values) if QUANTITIES[pick.quantity].log else {"type": "linear"}
    distances = pick.run.cached(locality).distance
    for trace in (_dots(pick.run, distances), _path(distances, pick.client)):
        figure.add_trace(trace, row=2, col=1)
    figure.update_layout(blank(**_SIZE, showlegend=False).layout, uirevision=pick.run.name)
    figure.update_layout(_same(""), hovermode="closest")
    figure.update_yaxes({"dtick": None, "exponentformat": None, "title": title, **log}, row=1, col=1)
    figure.update_yaxes(title=axis(distances), rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title="round", row=2, col=1)
    line = {"width": 1, "dash": "dot", "color": _PICKED}
    figure.add_vline(x=pick.round, line=line, row="all", col=1)
    return figure


def _three(pick: Pick) -> list[int]:
    """The picked client and the next two of its cohort, whose ids ascend; after the last comes the first."""
    ids = sorted(pick.run.round(pick.round).ids.tolist())
    if pick.client not in ids:
        raise ValueError(f"round {pick.round} of {pick.run.name} has clients {ids}; pick a round that has one.")
    place = ids.index(pick.client)
    return (ids[place:] + ids[:place])[:3]


def _ring(ds: xr.Dataset, name: str) -> go.Scatter:
    """A ring around the mark of that name."""
    place = ds.mark.values.tolist().index(name)
    return go.Scatter(
        x=[float(ds.mark_alpha[place])],
        y=[float(ds.mark_beta[place])],
        mode="markers",
        marker={"size": 19, "symbol": "circle-open", "color": _PICKED, "line": {"width": 3}},
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )


def _curve(name: str, run: Run, part: xr.DataArray, picked: bool) -> go.Scatter:
    return go.Scatter(
        x=small(part["round"]),
        y=small(part),
        mode="lines",
        connectgaps=True,
        name=name,
        line={"color": palette.colour(run.label), "width": 3 if picked else 1.2},
        opacity=1.0 if picked else 0.4,
        hovertemplate=f"{name}<br>round %{{x}}<br>{axis(part)} %{{y:.4g}}<extra></extra>",
    )


def _dots(run: Run, distance: xr.DataArray) -> go.Scatter:
    """One dot a client and round; customdata: round, client."""
    flat = distance.stack(at=("round", "client")).dropna("at")
    return go.Scatter(
        x=small(flat["round"]),
        y=small(flat),
        customdata=[[int(index), int(client)] for index, client in flat["at"].values],
        mode="markers",
        marker={"size": 6, "opacity": 0.55, "color": palette.colour(run.label)},
        name="clients",
        hovertemplate=f"round %{{x}}, client %{{customdata[1]}}<br>{axis(distance)} %{{y:.4g}}<extra></extra>",
    )


def _path(distance: xr.DataArray, client: int | None) -> go.Scatter:
    """The rounds in which the picked client took part."""
    part = distance.sel(client=client).dropna("round") if client in distance.client.values else distance[:0, 0]
    return go.Scatter(
        x=small(part["round"]),
        y=small(part),
        mode="lines+markers",
        line={"width": 1, "color": _PICKED},
        marker={"size": 9, "color": _PICKED},
        name=f"client {client}",
        hoverinfo="skip",
    )


def absent(reason: str) -> go.Figure:
    """An empty figure that says why."""
    figure = blank(**_SIZE, xaxis={"visible": False}, yaxis={"visible": False})
    text = "<br>".join(textwrap.wrap(reason, 52))
    note = {"text": text, "showarrow": False, "x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
    return figure.update_layout(_same("no plane"), annotations=[note])


def _same(title: str) -> dict[str, Any]:
    """Settings that every picture of a place states, so that none of an earlier one stays."""
    room = 36 if title else 16
    return {"title": {"text": title, "font": {"size": 13}}, "margin": {"l": 60, "r": 16, "t": room, "b": 48}}
