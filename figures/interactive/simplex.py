"""Loss over all aggregation weights of three clients, as a triangle."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from figures.interactive.contour_traces import look, models
from figures.interactive.look import axis, blank, is_log, log10, mark_names, small, span
from figures.interactive.slider import Traces
from figures.interactive.surface_traces import at_round
from figures.interactive.words import plain
from landscape.geometry.simplex import on_triangle

TOP = 1 - 1e-6
"""Third weight of the topmost row; a row of length zero would have no directions."""


def simplex(ds: xr.Dataset) -> go.Figure:
    """A map of the loss over the weights of three clients, one at each corner of a triangle, in logarithmic colours.

    Hovering names the weights, and the clients with their loss.

    Args:
        ds: Result of `drift.weight_simplex`, without weights below 0.

    Raises:
        ValueError: If the map has weights below 0.
        LookupError: If it has no value.
    """
    if float(ds.alpha.min()) < 0 or ds.sizes["alpha"] != ds.sizes["beta"]:
        raise ValueError("a map has weights below 0; compute it without `extend`.")
    log = is_log("loss", ds.loss)
    figure = blank(height=460, showlegend=False).add_traces(_triangle(ds, span(ds.loss, log=log), log))
    hidden = {"visible": False, "constrain": "domain"}
    figure.update_xaxes(**hidden, range=[-0.14, 1.14])
    figure.update_yaxes(**hidden, range=[-0.13, 0.99], scaleanchor="x")
    return figure


def rows(ds: xr.Dataset) -> np.ndarray:
    """Values on a square, shape (n, n): row i has third weight i / (n - 1), along it beta's share of the rest grows.

    A row of the triangle has fewer points the higher it lies; it is interpolated to n of them, piecewise linearly.
    """
    values = ds.loss.transpose("alpha", "beta").values
    steps = len(values) - 1
    across = np.linspace(0, 1, steps + 1)
    table = np.empty((steps + 1, steps + 1))
    for row in range(steps + 1):
        beta = np.arange(steps - row + 1)
        row_values = values[steps - row - beta, beta]
        table[row] = np.interp(across, beta / max(steps - row, 1), row_values) if len(row_values) > 1 else row_values[0]
    return table


def _triangle(ds: xr.Dataset, bounds: tuple[float, float], log: bool) -> Traces:
    """The carpet that maps a square to the triangle, the contours on it, grid points with hover texts, and models."""
    values = rows(ds)
    across = np.linspace(0, 1, len(values))
    third = np.minimum(across, TOP)[:, None]
    alpha, beta = (1 - third) * (1 - across), (1 - third) * across
    x, y = on_triangle(alpha, beta)
    unseen = {"showticklabels": "none", "showline": False, "showgrid": False, "smoothing": 0}
    unseen |= {"startline": False, "endline": False, "title": {"text": ""}}
    axes = {"a": small(across), "b": small(across)}
    net = go.Carpet(**axes, carpet="weights", x=small(x), y=small(y), aaxis=unseen, baxis=unseen)
    style = look(bounds, axis(ds.loss), log)
    contours = go.Contourcarpet(**axes, carpet="weights", z=small(log10(values) if log else values), **style)
    return [net, contours, _points(ds), _marks(ds)]


def _points(ds: xr.Dataset) -> go.Scatter:
    """The grid points, invisible: they carry the hover texts, which plotly does not show on a carpet."""
    alpha, beta = (array.ravel() for array in np.meshgrid(ds.alpha.values, ds.beta.values, indexing="ij"))
    values = ds.loss.transpose("alpha", "beta").values.ravel()
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
            f"{names[2]} %{{customdata[2]:.2f}}<br>{axis(ds.loss)} %{{customdata[3]:.4g}}<extra></extra>"
        ),
        name="weights",
    )


def _marks(ds: xr.Dataset) -> go.Scatter:
    sides = ["bottom center", "bottom center", "top center"]
    names = mark_names(ds)
    look = {
        "text": [plain(name) if number < 3 else "" for number, name in enumerate(names)],
        "textposition": [sides[number] if number < 3 else "top center" for number in range(len(names))],
    }
    points = on_triangle(ds.mark_alpha.values, ds.mark_beta.values)
    return models(ds, "loss", points, **look, name="models")
