"""Loss over all aggregation weights of three clients, as a triangle, round by round."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from figures.interactive.contour_traces import look, models
from figures.interactive.look import axis, blank, is_log, log10, mark_names, small, span
from figures.interactive.slider import Traces, sliding
from figures.interactive.surface_traces import at_round
from figures.interactive.surfaces import rounds_of
from figures.interactive.words import Notes, plain
from landscape.geometry.simplex import on_triangle

TOP = 1 - 1e-6
"""Third weight of the topmost row; a row of length zero would have no directions."""


def simplex_rounds(
    simplexes: Sequence[xr.Dataset], variable: str = "loss", *, notes: Sequence[Notes] | None = None
) -> go.Figure:
    """Maps over the weights of three clients, one at each corner of a triangle, with a slider over the rounds.

    Hovering names the weights, and the clients with their loss.

    Args:
        simplexes: Results of `drift.weight_simplex`, without weights below 0.
        variable: What is shown; the loss in logarithmic colours.
        notes: Further lines of the marks' hover texts, for each map.

    Raises:
        ValueError: If no map is given, or one has weights below 0.
        LookupError: If no map has a value.
    """
    if not simplexes:
        raise ValueError("no map of weights was given; compute one, for example run.cached(drift.weight_simplex).")
    for ds in simplexes:
        if float(ds.alpha.min()) < 0 or ds.sizes["alpha"] != ds.sizes["beta"]:
            raise ValueError("a map has weights below 0; compute it without `extend`.")
    log = is_log(variable, ds[variable])
    bounds = span(*(ds[variable] for ds in simplexes), log=log)
    notes = notes or [{}] * len(simplexes)
    figure = blank(height=460, showlegend=False)
    frames = [_triangle(ds, variable, bounds, log, note) for ds, note in zip(simplexes, notes, strict=True)]
    for index, traces in enumerate(frames):
        for trace in traces[:2]:
            trace.carpet = f"weights {index}"
    sliding(figure, frames, rounds_of(simplexes))
    hidden = {"visible": False, "constrain": "domain"}
    figure.update_xaxes(**hidden, range=[-0.14, 1.14])
    figure.update_yaxes(**hidden, range=[-0.13, 0.99], scaleanchor="x")
    return figure


def rows(ds: xr.Dataset, variable: str) -> np.ndarray:
    """Values on a square, shape (n, n): row i has third weight i / (n - 1), along it beta's share of the rest grows.

    A row of the triangle has fewer points the higher it lies; it is interpolated to n of them, piecewise linearly.
    """
    values = ds[variable].transpose("alpha", "beta").values
    steps = len(values) - 1
    across = np.linspace(0, 1, steps + 1)
    table = np.empty((steps + 1, steps + 1))
    for row in range(steps + 1):
        beta = np.arange(steps - row + 1)
        row_values = values[steps - row - beta, beta]
        table[row] = np.interp(across, beta / max(steps - row, 1), row_values) if len(row_values) > 1 else row_values[0]
    return table


def _triangle(ds: xr.Dataset, variable: str, bounds: tuple[float, float], log: bool, notes: Notes) -> Traces:
    """The carpet that maps a square to the triangle, the contours on it, grid points with hover texts, and models."""
    values = rows(ds, variable)
    across = np.linspace(0, 1, len(values))
    third = np.minimum(across, TOP)[:, None]
    alpha, beta = (1 - third) * (1 - across), (1 - third) * across
    x, y = on_triangle(alpha, beta)
    unseen = {"showticklabels": "none", "showline": False, "showgrid": False, "smoothing": 0}
    unseen |= {"startline": False, "endline": False, "title": {"text": ""}}
    axes = {"a": small(across), "b": small(across)}
    net = go.Carpet(**axes, x=small(x), y=small(y), aaxis=unseen, baxis=unseen)
    style = look(bounds, axis(ds[variable]), log)
    contours = go.Contourcarpet(**axes, z=small(log10(values) if log else values), **style)
    return [net, contours, _points(ds, variable), _marks(ds, variable, notes)]


def _points(ds: xr.Dataset, variable: str) -> go.Scatter:
    """The grid points, invisible: they carry the hover texts, which plotly does not show on a carpet."""
    alpha, beta = (array.ravel() for array in np.meshgrid(ds.alpha.values, ds.beta.values, indexing="ij"))
    values = ds[variable].transpose("alpha", "beta").values.ravel()
    finite = np.isfinite(values)
    alpha, beta, values = alpha[finite], beta[finite], values[finite]
    x, y = on_triangle(alpha, beta)
    names = [plain(name) for name in mark_names(ds)[:3]]
    return go.Scatter(
        x=small(x),
        y=small(y),
        mode="markers",
        marker={"size": 9, "opacity": 0},
        customdata=small(np.stack([alpha, beta, 1 - alpha - beta, values], axis=1)),
        hovertemplate=(
            f"{at_round(ds)}{names[0]} %{{customdata[0]:.2f}}<br>{names[1]} %{{customdata[1]:.2f}}<br>"
            f"{names[2]} %{{customdata[2]:.2f}}<br>{axis(ds[variable])} %{{customdata[3]:.4g}}<extra></extra>"
        ),
        name="weights",
    )


def _marks(ds: xr.Dataset, variable: str, notes: Notes) -> go.Scatter:
    sides = ["bottom center", "bottom center", "top center"]
    names = mark_names(ds)
    look = {
        "text": [plain(name) if number < 3 else "" for number, name in enumerate(names)],
        "textposition": [sides[number] if number < 3 else "top center" for number in range(len(names))],
    }
    points = on_triangle(ds.mark_alpha.values, ds.mark_beta.values)
    return models(ds, variable, points, notes, **look, name="models")
