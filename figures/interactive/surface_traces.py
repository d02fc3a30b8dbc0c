"""A loss surface in three dimensions, by plotly: what `figures.axes.relief` computes, as traces and a scene."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from figures.axes import relief as reliefs
from figures.axes.interpolated import is_triangle
from figures.axes.placed_text import spread_names, ticks
from figures.axes.relief import MEANS, Relief, relief
from figures.interactive import look as parts
from figures.interactive.slider import Traces
from figures.interactive.words import plain

FINE, COARSE, TRIANGLE = 80, 40, 128
"""Cells along each axis of a surface, of the map below it, and of both in a triangle: of few plotly frays the edge."""

UNIT = 300
"""Pixels of the length 1 of a scene, in which names keep clear of each other."""

ZOOM = 1.1
"""Size of a scene in its place."""

HALO = ", ".join(["0 0 3px black"] * 4)
"""Shadow of white text on a surface."""


def deep(ds: xr.Dataset, variable: str, levels: np.ndarray) -> Traces:
    """Traces of a surface: itself, the map below, level lines, paths, and models where it has marks."""
    cells = (TRIANGLE, TRIANGLE) if is_triangle(ds[variable].values) else (FINE, COARSE)
    scene, below = (relief(ds, variable, levels=levels, fine=fine) for fine in cells)
    unit = parts.axis(ds[variable])
    across, up = (parts.direction(ds, str(name)) for name in ds[variable].dims)
    ends = {"colorscale": parts.COLOURS, "cmin": scene.levels[0], "cmax": scene.levels[-1]}
    x, y, values = parts.grid(ds, variable)
    surface = go.Surface(
        **_sheet(scene),
        **ends,
        colorbar=parts.colour_bar(unit, *scene.levels[[0, -1]], log=scene.log),
        hovertemplate=f"{at_round(ds)}{across} %{{x:.3g}}<br>{up} %{{y:.3g}}<br>{unit} %{{z:.4g}}<extra></extra>",
        lighting={"ambient": 0.85, "diffuse": 0.9, "specular": 0.1, "roughness": 0.8, "fresnel": 0.1},
        lightposition=dict(zip("xyz", (1e5 * reliefs.towards(*reliefs.LIGHT)).tolist(), strict=True)),
        meta={"x": parts.small(x), "y": parts.small(y), "z": parts.small(values)},
        name=variable,
    )
    quiet = {"hoverinfo": "skip", "showscale": False, "lighting": {"ambient": 0.6, "diffuse": 0}, "name": "map"}
    flat = _sheet(below)
    flat["z"] = np.where(np.isfinite(flat["z"]), scene.values(np.array(scene.floor, np.float32)), np.float32(np.nan))
    draped = [*(scene.raised(line, 2.5) for line in scene.lines), *map(scene.raised, scene.flat_lines)]
    lines = _lines(scene, draped, 0.55, 2)
    traces = [surface, go.Surface(**flat, **ends, **quiet), lines]
    if "mark" not in ds.dims:
        return traces
    foot, main = scene.raised(scene.places, 2), scene.main
    models = go.Scatter3d(
        **_points(scene, foot),
        customdata=parts.small(ds[f"mark_{variable}"]),
        mode="markers",
        text=[plain(name) for name in parts.mark_names(ds)],
        marker={
            "size": np.where(main, 8, 6).tolist(),
            "color": np.where(main, reliefs.MEAN, reliefs.MODEL).tolist(),
            "symbol": symbols(ds, "circle", "diamond"),
            "line": {"color": reliefs.EDGE, "width": 1},
        },
        hovertemplate=f"{at_round(ds)}%{{text}}<br>{unit} %{{customdata:.4g}}<extra></extra>",
        showlegend=False,
    )
    return [*traces, _lines(scene, [*map(scene.raised, scene.paths)], 1, 6), models]


def at_round(ds: xr.Dataset) -> str:
    """First line of a hover text: the round of a surface, if it is stated."""
    return f"round {ds.attrs['round']}<br>" if "round" in ds.attrs else ""


def symbols(ds: xr.Dataset, model: str, mean: str) -> list[str]:
    """Symbol of every mark: means have their own."""
    return [mean if name.startswith(MEANS) else model for name in parts.mark_names(ds)]


def lay_deep(ds: xr.Dataset, variable: str, levels: np.ndarray) -> dict[str, Any]:
    """The scene of a surface: its two axes, the names of its models, and the camera."""
    scene = relief(ds, variable, levels=levels, fine=COARSE)
    plain_axis = {"showgrid": False, "zeroline": False, "showbackground": False, "showspikes": False, "tickangle": 0}
    axes = [
        {**plain_axis, "title": {"text": title}, "tickvals": ticks(*grid[[0, -1]]).tolist()}
        for title, grid in zip(scene.titles, (scene.x, scene.y), strict=True)
    ]
    kind = {
        "type": "log" if scene.log else "linear",
        "range": [scene.floor - 0.02 * scene.span, float(scene.levels[-1])],
    }
    eye = dict(zip("xyz", (2 * reliefs.towards(reliefs.AZIMUTH, reliefs.ELEVATION)).tolist(), strict=True))
    return {
        "xaxis": axes[0],
        "yaxis": axes[1],
        "zaxis": {**kind, "visible": False, "title": {"text": variable}},
        "annotations": labels(ds, variable, levels),
        "aspectmode": "manual",
        "aspectratio": dict(zip("xyz", (ZOOM * scene.box).tolist(), strict=True)),
        "camera": {"eye": eye, "center": {"x": 0, "y": 0, "z": -0.12}, "projection": {"type": "orthographic"}},
    }


def labels(ds: xr.Dataset, variable: str, levels: np.ndarray) -> list[dict[str, Any]]:
    """Names beside the models, clear of each other for the first camera; as `layout.scene.annotations`."""
    if "mark" not in ds.dims:
        return []
    scene = relief(ds, variable, levels=levels, fine=COARSE)
    finite = np.isfinite(scene.places[:, 2])
    names, places = [name for name, there in zip(scene.names, finite, strict=True) if there], scene.places[finite]
    points = UNIT * scene.screen(places)
    shifts = spread_names(points, [6.5 * len(name) for name in names], 15) - points
    look = {"showarrow": False, "font": {"color": "white", "size": 12, "shadow": HALO}}
    return [
        {"text": plain(name), "x": x, "y": y, "z": z, "xshift": right, "yshift": up, **look}
        for name, (x, y, z), (right, up) in zip(names, places.tolist(), shifts.tolist(), strict=True)
    ]


def _sheet(scene: Relief) -> dict[str, np.ndarray]:
    """Points and colours of a surface; the points next to the long side of a triangle lie on it, so it is straight."""
    x, y, z = scene.x, scene.y, scene.z.copy()
    if is_triangle(z):
        over = np.maximum(np.add.outer(x, y) - x[-1] - y[0], 0) / 2
        x, y = x[:, None] - over, y - over
        beyond = np.fliplr(np.eye(len(z) - 1, dtype=bool))
        z[1:, 1:][beyond] = (z[1:, :-1] + z[:-1, 1:])[beyond] / 2
    sheet = {"x": x, "y": y, "z": scene.values(z), "surfacecolor": z}
    return {name: parts.small(values.T) for name, values in sheet.items()}


def _points(scene: Relief, points: np.ndarray) -> dict[str, np.ndarray]:
    x, y, z = points.T
    return {"x": parts.small(x), "y": parts.small(y), "z": parts.small(scene.values(z))}


def _lines(scene: Relief, lines: list[np.ndarray], opacity: float, width: float) -> go.Scatter3d:
    """White lines of one look, with gaps between them."""
    gap = np.full((1, 3), np.nan)
    points = np.concatenate([point for line in lines for point in (line, gap)] or [gap])
    line = {"color": f"rgba(255,255,255,{opacity})", "width": width}
    return go.Scatter3d(**_points(scene, points), mode="lines", line=line, hoverinfo="skip", showlegend=False)
