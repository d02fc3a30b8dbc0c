"""Traces of a loss surface as a contour map with its models."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from figures.axes.relief import COUNT, direction
from figures.interactive import look as parts
from figures.interactive.slider import Traces
from figures.interactive.surface_traces import at_round, symbols
from figures.interactive.words import plain

EDGE = {"color": "black", "width": 1}

HALO = "0 0 3px white, 0 0 3px white, 0 0 4px white"
"""Shadow of black text on a map."""


def flat(ds: xr.Dataset, variable: str, levels: np.ndarray) -> Traces:
    """Traces of a map: its contours, and its models where it has marks."""
    contour = contours(ds, variable, levels)
    if "mark" not in ds.dims:
        return [contour]
    x, y, _ = parts.grid(ds, variable)
    places = ds[f"mark_{x.name}"], ds[f"mark_{y.name}"]
    names = [plain(name) for name in parts.mark_names(ds)]
    font = {"color": "black", "shadow": HALO}
    points = models(ds, variable, places, text=names, textposition="top center", textfont=font, showlegend=False)
    return [contour, points.update(marker_size=11)]


def models(ds: xr.Dataset, variable: str, places: tuple[Any, Any], **look: Any) -> go.Scatter:
    """Models on a map: triangles, and a cross for their mean, with their own values."""
    return go.Scatter(
        x=parts.small(places[0]),
        y=parts.small(places[1]),
        mode="markers+text",
        hovertext=[plain(name) for name in parts.mark_names(ds)],
        customdata=parts.small(ds[f"mark_{variable}"]),
        marker={"size": 10, "color": "white", "symbol": symbols(ds, "triangle-up", "x"), "line": EDGE},
        hovertemplate=f"{at_round(ds)}%{{hovertext}}<br>{parts.axis(ds[variable])} %{{customdata:.4g}}<extra></extra>",
        cliponaxis=False,
        **look,
    )


def contours(ds: xr.Dataset, variable: str, levels: np.ndarray) -> go.Contour:
    """The filled contours of a map; customdata are its values where the colours are their logarithms."""
    log = variable == "loss" and bool(levels[0] > 0)
    bounds = (parts.log10(levels) if log else levels)[[0, -1]].tolist()
    x, y, values = parts.grid(ds, variable)
    unit = parts.axis(ds[variable])
    across, up = (parts.direction(ds, str(values.name)) for values in (x, y))
    return go.Contour(
        x=parts.small(x),
        y=parts.small(y),
        z=parts.small(parts.log10(values) if log else values),
        customdata=parts.small(values),
        **look(bounds, unit, log),
        hovertemplate=(
            f"{at_round(ds)}{across} %{{x:.3g}}<br>{up} %{{y:.3g}}<br>{unit} %{{customdata:.4g}}<extra></extra>"
        ),
        name=variable,
    )


def look(bounds: tuple[float, float], unit: str, log: bool) -> dict[str, Any]:
    """Colours, levels and colour bar of a map."""
    low, high = bounds
    return {
        "colorscale": parts.COLOURS,
        "zmin": low,
        "zmax": high,
        "contours": {"start": low, "end": high, "size": (high - low) / (COUNT - 1)},
        "line": {"width": 0.4, "color": "rgba(255,255,255,0.6)"},
        "colorbar": parts.colour_bar(unit, low, high, log=log),
    }


def lay_flat(figure: go.Figure, ds: xr.Dataset, variable: str, **panel: int) -> None:
    """Axes of a map in a figure, or in its panel (row, col); with one scale where both directions have one length."""
    first, second = map(str, ds[variable].dims)
    figure.update_xaxes(title=direction(ds, first), constrain="domain", showgrid=False, zeroline=False, **panel)
    figure.update_yaxes(title=direction(ds, second), constrain="domain", showgrid=False, zeroline=False, **panel)
    if ds.attrs.get("isometric") == 1:
        figure.update_yaxes(scaleanchor="x", **panel)
