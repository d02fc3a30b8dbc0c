"""Figures of the drift view: distances of clients, factors of the averaged model's loss, parts of the global step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from drift.analyses.rounds.critical_point import critical_point
from drift.runs.growing_run import GrowingRun
from figures.explore.record.line_figure import SELECTED, Marks, shapes
from figures.interactive.look import axis, bar, blank, round_axis, small
from figures.interactive.words import plain
from figures.looks import palette

FACTORS = {
    "fma_loss": ("averaged model (FMA)", "#333333", "solid", "circle"),
    "wens_loss": ("ensemble (WENS)", "#8a8a8a", "dash", "circle-open"),
    "bias2": ("squared bias", "#0072B2", "solid", "square"),
    "var": ("variance", "#E69F00", "dash", "diamond"),
    "cov": ("covariance", "#009E73", "dot", "triangle-up"),
    "residual": ("FMA minus WENS", "#CC79A7", "dashdot", "x"),
}
"""Label, colour, dash and symbol of what the decomposition shows."""

PATTERNS = {"full": "", "sampling": "/", "server": "x", "gradient_sampling": ".", "local": "\\"}
"""Parts of a global step that are shown, and the patterns that tell them apart in grey."""


ROUNDING = 1e-4
"""Share of the step's norm up to which a part counts as zero."""


def distances_figure(run: GrowingRun, distance: xr.DataArray, marks: Marks, clients: Sequence[int] = ()) -> go.Figure:
    """How far each client of each round ended from the mean of its cohort; points have the client as data.

    Args:
        run: The run.
        distance: Variable of `drift.locality` over round and client.
        marks: Selected round and rounds.
        clients: Selected clients, which are drawn in a colour of their own.
    """
    distance = _fewer(distance, marks.round)
    rows, columns = np.nonzero(np.isfinite(distance.values))
    rounds, ids = distance["round"].values[rows], distance["client"].values[columns]
    values = distance.values[rows, columns]
    selected = np.isin(ids, list(clients))
    look = {"dragmode": "select", "selectdirection": "h", "selections": [], "hoverdistance": 20}
    figure = blank(height=300, uirevision=run.name, selectionrevision=f"{marks.rounds}", showlegend=False, **look)
    plain_look = {"size": 5, "opacity": 0.7, "color": palette.colour(run.label)}
    for some, marker in ((~selected, plain_look), (selected, {"size": 8, "color": SELECTED, "symbol": "diamond"})):
        trace = {"type": "scatter", "mode": "markers", "x": small(rounds[some]), "y": small(values[some])}
        hover = f"round %{{x}}, client %{{customdata}}<br>{axis(distance)} %{{y:.4g}}<extra></extra>"
        unselected = {"marker": {"opacity": marker.get("opacity", 1)}}
        figure.add_trace(
            {**trace, "marker": marker, "customdata": ids[some], "hovertemplate": hover, "unselected": unselected}
        )
    figure.update_xaxes(round_axis(distance["round"].values))
    figure.update_yaxes(title=axis(distance), rangemode="tozero")
    figure.update_layout(title={"text": plain(f"clients of {run.name}"), "font": {"size": 12}}, margin={"t": 36})
    return figure.update_layout(shapes=shapes(marks))


def _fewer(distance: xr.DataArray, selected: int | None) -> xr.DataArray:
    """Evenly spaced rounds with at most `POINTS` points in all, and the selected one."""
    step = -(-int(distance.notnull().sum()) // POINTS)
    rounds = distance["round"].values
    return distance.isel(round=(np.arange(len(rounds)) % max(1, step) == 0) | (rounds == selected))


POINTS = 6_000
"""Points of clients that are drawn; of more, rounds are left out evenly."""


def mark_critical_point(figure: go.Figure, run: GrowingRun, ds: xr.Dataset) -> str:
    """Draw the change point of a run's coherence with its interval; returns what it is, or why there is none.

    Args:
        figure: Figure of the coherence.
        run: The run.
        ds: Result of `drift.coherence`.
    """
    point = float(ds.critical_point)
    if point != point:
        reason = critical_point(ds["round"].values, ds.coherence.values).reason
        return f"{run.name}: coherence has no clear change point; {reason}."
    low, high = float(ds.critical_low), float(ds.critical_high)
    shade = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "x0": low - 0.5, "x1": high + 0.5, "layer": "below"}
    line = {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": point, "x1": point, "line": {"color": "#8a8a8a"}}
    bands = [{**shade, "line": {"width": 0}, "fillcolor": "#E69F00", "opacity": 0.18}, line]
    figure.layout.shapes = [*bands, *figure.layout.shapes]
    shaded = f"95 % bootstrap interval: {low:.0f} to {high:.0f}, shaded"
    return f"{run.name}: coherence turns negative in round {point:.0f} ({shaded})."


def factors_figure(ds: xr.Dataset, marks: Marks) -> go.Figure:
    """Losses of the averaged model and of the ensemble, and their bias, variance and covariance, over rounds.

    Args:
        ds: Result of `drift.decomposition`; what it has not (NaN) is left out.
        marks: Selected round and rounds.
    """
    figure = blank(height=360, uirevision="factors")
    for name, (label, colour, dash, symbol) in FACTORS.items():
        if bool(ds[name].notnull().any()):
            around = symbol.endswith("open")  # seen where it equals another one, as with one model per client
            marker = {"symbol": symbol, "size": 14 if around else 8, "color": colour}
            line = {"color": colour, "dash": dash, "width": 2}
            hover = f"{label}<br>round %{{x}}: %{{y:.4g}}<extra></extra>"
            shown = {"x": small(ds["round"]), "y": small(ds[name]), "name": label, "hovertemplate": hover}
            figure.add_trace(go.Scatter(mode="lines+markers", marker=marker, line=line, **shown))
    figure.update_xaxes(round_axis(ds["round"].values))
    figure.update_yaxes(title="squared error of the outputs")
    return figure.update_layout(shapes=shapes(marks, zero=True))


def terms_figure(ds: xr.Dataset, variable: str) -> go.Figure:
    """Parts of the global steps of rounds as bars: their norm, or the loss that each costs.

    Args:
        ds: Result of `drift.counterfactual`.
        variable: norm or loss_cost.
    """
    values = ds[variable]
    least = ROUNDING * float(ds.norm.sel(part="step").max())
    figure = blank(height=320, barmode="group", uirevision=f"parts {variable}")
    rounds = [f"round {index}" for index in ds["round"].values.tolist()]
    for name, pattern in PATTERNS.items():
        label, colour = palette.TERMS[name]
        bars = values.sel(part=name)
        if (name == "full" and variable != "norm") or not float(ds.norm.sel(part=name).max()) > least:
            continue
        hover = f"{label}, %{{x}}<br>{axis(values)} %{{y:.4g}}"
        figure.add_trace(bar(rounds, small(bars), label, colour, hover, pattern=pattern))
    figure.update_xaxes(type="category")
    cost = axis(values.assign_attrs(long_name="loss that it costs"))
    figure.update_yaxes(title=cost if variable == "loss_cost" else "norm")
    return figure


def client_costs_figure(ds: xr.Dataset, index: int, clients: Sequence[int]) -> go.Figure:
    """Loss that the drift of each client of a cohort costs, as bars; the client is their data.

    Args:
        ds: Result of `drift.counterfactual`.
        index: One of its rounds.
        clients: Selected clients.
    """
    cost = ds.client_cost.sel(round=index).dropna("client")
    ids = cost["client"].values.tolist()
    colours = [SELECTED if client in clients else "#0072B2" for client in ids]
    drift_of = ds.client_drift.sel(round=index, client=ids).values
    texts = [f"client {client}, drift {length:.3g}" for client, length in zip(ids, drift_of, strict=True)]
    figure = blank(height=280, showlegend=False, uirevision="client costs")
    more = {"text": texts, "textposition": "none", "customdata": ids}
    hover = "%{text}<br>costs %{y:.4g}"
    figure.add_trace(bar([str(client) for client in ids], small(cost), "clients", colours, hover, **more))
    figure.update_xaxes(type="category", title=f"client of round {index}")
    figure.update_yaxes(title=axis(cost.assign_attrs(long_name="loss that its drift costs")))
    return figure
