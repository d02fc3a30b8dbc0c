"""Interactive loss surfaces: in three dimensions, as contour maps, and over rounds with a slider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from figures.explore_look import COLOURS, axis, blank, colour_bar, log10, small, span

LEVELS = 14
"""Contour lines between the smallest and the largest value."""

PIN = 0.15
"""Height of the pins that carry the models' names, as a fraction of the surface's height."""

Traces = list[Any]


def surface3d(ds: xr.Dataset, variable: str = "loss") -> go.Figure:
    """A plane as a surface in three dimensions, its models as labelled points on it.

    The loss has a logarithmic height and colour, other metrics linear ones.

    Args:
        ds: The variable over two dimensions; marks as `landscape.surface` gives them.

    Raises:
        ValueError: If the variable does not have two dimensions.
        LookupError: If the surface has no values.
    """
    return surface_rounds([ds], variable)


def explore_contour(ds: xr.Dataset, variable: str = "loss") -> go.Figure:
    """A plane as a contour map with levels spaced in log for the loss; otherwise as `surface3d`."""
    return surface_rounds([ds], variable, flat=True)


def surface_rounds(surfaces: Sequence[xr.Dataset], variable: str = "loss", *, flat: bool = False) -> go.Figure:
    """Surfaces of several rounds, one at a time, with a slider over the rounds and one colour scale for all.

    Args:
        surfaces: Planes with attribute `round`; they may have different grids.
        variable: What is shown.
        flat: As contour maps instead of in three dimensions.

    Raises:
        ValueError: If no surface is given, or the variable does not have two dimensions.
        LookupError: If no surface has a value.
    """
    if not surfaces:
        raise ValueError("no surface was given; compute one, for example run.cached(drift.round_plane).")
    for ds in surfaces:
        if ds[variable].ndim != 2:
            raise ValueError(f"{variable} has dimensions {', '.join(map(str, ds[variable].dims))}; a map needs two.")
    log = variable == "loss"
    bounds = span(*(ds[variable] for ds in surfaces), log=log)
    draw = _contour if flat else _surface
    parts = [draw(ds, variable, bounds, log) for ds in surfaces]
    figure = blank(height=460)
    last = len(parts) - 1
    for index, traces in enumerate(parts):
        for trace in traces:
            trace.visible = index == last
            figure.add_trace(trace)
    (_lay_flat if flat else _lay_deep)(figure, surfaces[-1], variable, log)
    names = [{} if flat else {"scene.annotations": _labels(ds, variable, log)} for ds in surfaces]
    if len(parts) > 1:
        figure.update_layout(sliders=[_slider(surfaces, [len(traces) for traces in parts], names)])
    return figure


def _surface(ds: xr.Dataset, variable: str, bounds: tuple[float, float], log: bool) -> Traces:
    x, y, values = _grid(ds, variable)
    unit = axis(ds[variable])
    hover = f"{x.name} %{{x:.3g}}<br>{y.name} %{{y:.3g}}<br>{unit} %{{z:.4g}}<extra></extra>"
    surface = go.Surface(
        x=small(x),
        y=small(y),
        z=small(values),
        surfacecolor=small(log10(values) if log else values),
        colorscale=COLOURS,
        cmin=bounds[0],
        cmax=bounds[1],
        colorbar=colour_bar(unit, *bounds, log=log),
        hovertemplate=hover,
        name=variable,
    )
    if "mark" not in ds.dims:
        return [surface]
    return [surface, *_pins(ds, variable, log)]


def _pins(ds: xr.Dataset, variable: str, log: bool) -> Traces:
    """Models as labelled heads of pins that stand on the surface, so that it does not hide them."""
    first, second = map(str, ds[variable].dims)
    x, y, foot = (small(ds[f"mark_{name}"]) for name in (first, second, variable))
    head = small(_heads(ds, variable, log))
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
        text=_names(ds),
        marker={"size": 5, "color": "white", "symbol": _symbols(ds, "diamond", "circle"), "line": _EDGE},
        hovertemplate=f"%{{text}}<br>{axis(ds[variable])} %{{customdata:.4g}}<extra></extra>",
        showlegend=False,
    )
    return [stems, heads]


def _heads(ds: xr.Dataset, variable: str, log: bool) -> np.ndarray:
    """Heights of the pins' heads, shape (marks,)."""
    scale, foot = ds[variable].values, ds[f"mark_{variable}"].values
    scale = log10(scale) if log else scale
    rise = PIN * float(np.nanmax(scale) - np.nanmin(scale))
    return np.asarray(foot * 10**rise if log else foot + rise)


def _labels(ds: xr.Dataset, variable: str, log: bool) -> list[dict[str, Any]]:
    """Names over the pins, on a pale ground; as `layout.scene.annotations`."""
    if "mark" not in ds.dims:
        return []
    first, second = map(str, ds[variable].dims)
    heads = _heads(ds, variable, log)
    heads = log10(heads) if log else heads  # annotations are placed by exponents on a logarithmic axis
    places = zip(_names(ds), ds[f"mark_{first}"].values, ds[f"mark_{second}"].values, heads, strict=True)
    look = {
        "showarrow": False,
        "yshift": 14,
        "bgcolor": "rgba(255,255,255,0.75)",
        "font": {"color": "black", "size": 11},
    }
    return [
        {"text": name, "x": float(x), "y": float(y), "z": float(z), **look}
        for name, x, y, z in places
        if np.isfinite(z)
    ]


def _contour(ds: xr.Dataset, variable: str, bounds: tuple[float, float], log: bool) -> Traces:
    x, y, values = _grid(ds, variable)
    low, high = bounds
    unit = axis(ds[variable])
    contour = go.Contour(
        x=small(x),
        y=small(y),
        z=small(log10(values) if log else values),
        customdata=small(values),
        colorscale=COLOURS,
        zmin=low,
        zmax=high,
        contours={"start": low, "end": high, "size": (high - low) / LEVELS},
        line={"width": 0.4, "color": "rgba(255,255,255,0.6)"},
        colorbar=colour_bar(unit, low, high, log=log),
        hovertemplate=f"{x.name} %{{x:.3g}}<br>{y.name} %{{y:.3g}}<br>{unit} %{{customdata:.4g}}<extra></extra>",
        name=variable,
    )
    if "mark" not in ds.dims:
        return [contour]
    points = go.Scatter(
        x=small(ds[f"mark_{x.name}"]),
        y=small(ds[f"mark_{y.name}"]),
        mode="markers+text",
        text=_names(ds),
        textposition="top center",
        textfont={"color": "black", "shadow": _HALO},
        customdata=small(ds[f"mark_{variable}"]),
        marker={"size": 11, "color": "white", "symbol": _symbols(ds, "triangle-up", "x"), "line": _EDGE},
        hovertemplate=f"%{{text}}<br>{unit} %{{customdata:.4g}}<extra></extra>",
        cliponaxis=False,
        showlegend=False,
    )
    return [contour, points]


_EDGE = {"color": "black", "width": 1}
_HALO = "0 0 3px white, 0 0 3px white, 0 0 4px white"


def _grid(ds: xr.Dataset, variable: str) -> tuple[xr.DataArray, xr.DataArray, np.ndarray]:
    """Both coordinates, and the values with the second one along rows, as plotly takes them."""
    first, second = map(str, ds[variable].dims)
    return ds[first], ds[second], ds[variable].transpose(second, first).values


def _names(ds: xr.Dataset) -> list[str]:
    return [str(name) for name in ds["mark"].values]


def _symbols(ds: xr.Dataset, model: str, mean: str) -> list[str]:
    return [mean if name == "mean" else model for name in _names(ds)]


def _lay_deep(figure: go.Figure, ds: xr.Dataset, variable: str, log: bool) -> None:
    first, second = map(str, ds[variable].dims)
    figure.update_layout(
        margin={"l": 0, "r": 0, "t": 8, "b": 8},
        scene={
            "xaxis": {"title": {"text": axis(ds[first])}},
            "yaxis": {"title": {"text": axis(ds[second])}},
            "zaxis": {"title": {"text": variable}, "type": "log" if log else "linear"},
            "annotations": _labels(ds, variable, log),
            "aspectmode": "manual",
            "aspectratio": {"x": 1.2, "y": 1.2, "z": 0.8},
            "camera": {"eye": {"x": 0.5, "y": -2.0, "z": 1.45}, "center": {"x": 0, "y": 0, "z": -0.12}},
        },
    )


def _lay_flat(figure: go.Figure, ds: xr.Dataset, variable: str, log: bool) -> None:
    first, second = map(str, ds[variable].dims)
    figure.update_xaxes(title=axis(ds[first]), constrain="domain", showgrid=False, zeroline=False)
    figure.update_yaxes(title=axis(ds[second]), constrain="domain", showgrid=False, zeroline=False)
    if ds.attrs.get("isometric") == 1:
        figure.update_yaxes(scaleanchor="x")


def _slider(surfaces: Sequence[xr.Dataset], counts: Sequence[int], layouts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A slider whose steps show one surface each, and change the layout."""
    steps = []
    for index, (ds, layout) in enumerate(zip(surfaces, layouts, strict=True)):
        visible = [place == index for place, count in enumerate(counts) for _ in range(count)]
        label = str(ds.attrs.get("round", index))
        steps.append({"label": label, "method": "update", "args": [{"visible": visible}, layout]})
    return {"active": len(steps) - 1, "steps": steps, "currentvalue": {"prefix": "round "}, "pad": {"t": 32}}
