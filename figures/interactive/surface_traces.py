"""Traces of a loss surface in three dimensions: the surface, its models on pins, their names."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from figures.interactive import look as parts
from figures.interactive.slider import Traces
from figures.interactive.words import Notes, plain

PIN = 0.15
"""Height of the pins that carry the models' names, as a fraction of the surface's height."""

EDGE = {"color": "black", "width": 1}


def deep(ds: xr.Dataset, variable: str, bounds: tuple[float, float], log: bool, notes: Notes) -> Traces:
    """Traces of a surface: itself, and stems and heads of the pins where it has marks."""
    x, y, values = parts.grid(ds, variable)
    unit = parts.axis(ds[variable])
    across, up = (parts.direction(ds, str(values.name)) for values in (x, y))
    surface = go.Surface(
        x=parts.small(x),
        y=parts.small(y),
        z=parts.small(values),
        surfacecolor=parts.small(parts.log10(values) if log else values),
        colorscale=parts.COLOURS,
        cmin=bounds[0],
        cmax=bounds[1],
        colorbar=parts.colour_bar(unit, *bounds, log=log),
        hovertemplate=f"{at_round(ds)}{across} %{{x:.3g}}<br>{up} %{{y:.3g}}<br>{unit} %{{z:.4g}}<extra></extra>",
        name=variable,
    )
    if "mark" not in ds.dims:
        return [surface]
    return [surface, *_pins(ds, variable, log, notes)]


def at_round(ds: xr.Dataset) -> str:
    """First line of a hover text: the round of a surface, if it is stated."""
    return f"round {ds.attrs['round']}<br>" if "round" in ds.attrs else ""


def mark_words(ds: xr.Dataset, notes: Notes) -> list[str]:
    """Names of the marks with their notes."""
    return [f"{plain(name)}<br>{notes[name]}" if name in notes else plain(name) for name in parts.mark_names(ds)]


def symbols(ds: xr.Dataset, model: str, mean: str) -> list[str]:
    """Symbol of every mark: means have their own."""
    return [mean if name.startswith(("mean", "by size")) else model for name in parts.mark_names(ds)]


def lay_deep(ds: xr.Dataset, variable: str, bounds: tuple[float, float], log: bool) -> dict[str, Any]:
    """The scene of a surface; a few logarithmic heights are labelled."""
    first, second = map(str, ds[variable].dims)
    few = {"type": "log", "tickvals": parts.nice(10 ** bounds[0], 10 ** bounds[1])[::2]} if log else {"type": "linear"}
    return {
        "xaxis": {"title": {"text": parts.coordinate(ds, first)}},
        "yaxis": {"title": {"text": parts.coordinate(ds, second)}},
        "zaxis": {"title": {"text": variable}, **few},
        "annotations": labels(ds, variable, log),
        "aspectmode": "manual",
        "aspectratio": {"x": 1.2, "y": 1.2, "z": 0.8},
        "camera": {"eye": {"x": 0.5, "y": -2.0, "z": 1.45}, "center": {"x": 0, "y": 0, "z": -0.12}},
    }


def labels(ds: xr.Dataset, variable: str, log: bool) -> list[dict[str, Any]]:
    """Names over the pins, on a pale ground; as `layout.scene.annotations`."""
    if "mark" not in ds.dims:
        return []
    first, second = map(str, ds[variable].dims)
    heads = _heads(ds, variable, log)
    heads = parts.log10(heads) if log else heads  # annotations are placed by exponents on a logarithmic axis
    places = zip(parts.mark_names(ds), ds[f"mark_{first}"].values, ds[f"mark_{second}"].values, heads, strict=True)
    look = {
        "showarrow": False,
        "yshift": 14,
        "bgcolor": "rgba(255,255,255,0.75)",
        "font": {"color": "black", "size": 11},
    }
    return [
        {"text": plain(name), "x": float(x), "y": float(y), "z": float(z), **look}
        for name, x, y, z in places
        if np.isfinite(z)
    ]


def _pins(ds: xr.Dataset, variable: str, log: bool, notes: Notes) -> Traces:
    """Models as labelled heads of pins that stand on the surface, so that it does not hide them."""
    first, second = map(str, ds[variable].dims)
    x, y, foot = (parts.small(ds[f"mark_{name}"]) for name in (first, second, variable))
    head = parts.small(_heads(ds, variable, log))
    gap = np.full_like(foot, np.nan)
    stems = go.Scatter3d(
        x=np.repeat(x, 3),
        y=np.repeat(y, 3),
        z=np.stack([foot, head, gap], axis=1).ravel(),
        mode="lines",
        line={"color": "gray", "width": 3},
        hoverinfo="skip",
        showlegend=False,
    )
    heads = go.Scatter3d(
        x=x,
        y=y,
        z=head,
        customdata=foot,
        mode="markers",
        text=mark_words(ds, notes),
        marker={"size": 5, "color": "white", "symbol": symbols(ds, "diamond", "circle"), "line": EDGE},
        hovertemplate=f"{at_round(ds)}%{{text}}<br>{parts.axis(ds[variable])} %{{customdata:.4g}}<extra></extra>",
        showlegend=False,
    )
    return [stems, heads]


def _heads(ds: xr.Dataset, variable: str, log: bool) -> np.ndarray:
    """Heights of the pins' heads, shape (marks,)."""
    scale, foot = ds[variable].values, ds[f"mark_{variable}"].values
    scale = parts.log10(scale) if log else scale
    rise = PIN * float(np.nanmax(scale) - np.nanmin(scale))
    return np.asarray(foot * 10**rise if log else foot + rise)
