"""Figures of planes and lines in the explorer, and of what is known of one point of them."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from figures.interactive.look import axis, bar, blank, log_axis, small
from figures.interactive.surfaces import explore_contour, surface3d
from figures.selection.statistics_text import statistics_text
from landscape.results.stated import NAMES
from landscape.surfaces.minimum import Minimum
from landscape.surfaces.point_table import metrics_of

POINT = "#d0006f"
"""Colour of the selected point, that of no method."""

NORMAL_95 = 1.96

CLOSE = 0.05
"""Largest error of an interpolated error rate that is shown, as a share of its range."""

SMALL = 260
"""Height of the figures of one point, pixels."""


def quantity_of(ds: xr.Dataset, quantity: str) -> tuple[xr.Dataset, str]:
    """A surface with what is shown as one of its variables, and the variable's name.

    Args:
        quantity: loss, error, "class 3" (error of that class), or "client 5" (its loss; the surface is of its samples).

    Raises:
        LookupError: If the surface has no such values.
    """
    kind, _, number = quantity.partition(" ")
    if kind == "client":
        return ds, "loss"
    if kind != "class":
        if quantity not in ds:
            raise LookupError(f"these samples have no {quantity}; they have {', '.join(metrics_of(ds))}.")
        return ds, quantity
    if "class_error" not in ds or not number.isdigit() or int(number) >= ds.sizes["class"]:
        raise LookupError(f"these samples have no {quantity}.")
    selected = ds.isel({"class": int(number)}, drop=True)
    label = str(ds["class"].values[int(number)]) if "class" in ds.coords else number
    shown = ds.assign(class_shown=selected.class_error, mark_class_shown=selected.mark_class_error)
    if "class_error_interpolation_share" in selected:
        shown = shown.assign(class_shown_interpolation_share=selected.class_error_interpolation_share)
    shown.class_shown.attrs.update(long_name=f"error of class {label}", units="fraction")
    if not np.isfinite(shown.class_shown.values).any():
        raise LookupError(f"no sample of class {label} is among the samples that are evaluated; take more of them.")
    return shown, "class_shown"


def plane_figure(
    ds: xr.Dataset,
    variable: str,
    *,
    deep: bool = False,
    point: tuple[float, ...] | None = None,
    minimum: Minimum | None = None,
    revision: str = "",
) -> go.Figure:
    """A plane as a map or in three dimensions, with the selected point and the minimum of the loss.

    Args:
        point: Its coordinates; in three dimensions it lies on the surface.
        minimum: Drawn with 95 % of its uncertainty; only on maps.
        revision: While it stays, so do zoom and camera.
    """
    ds = _named(ds)
    if deep:
        figure = surface3d(ds, variable)
        if point is not None:
            heights = ds[variable].interp(alpha=point[0], beta=point[1])
            marker = {"size": 6, "color": POINT}
            spot = {"x": [point[0]], "y": [point[1]], "z": [float(heights)]}
            figure.add_trace(go.Scatter3d(**spot, mode="markers", marker=marker, name="point", showlegend=False))
        return figure.update_layout(uirevision=revision)
    figure = explore_contour(ds, variable)
    _name_directions(figure, ds)
    if minimum is not None and minimum.state == "inside":
        figure.add_trace(_minimum_trace(minimum))
        _clear(figure, ds, minimum)
    if point is not None:
        figure.add_trace(_point_trace(*point))
    return figure.update_layout(uirevision=revision, margin={"t": 8, "r": 8})


def _named(ds: xr.Dataset) -> xr.Dataset:
    """The surface, its equal mean named so that it is not taken for the cohort's aggregate."""
    mean = "mean of these two" if "t" in ds.dims else "mean of these three"
    names = [mean if name == "mean" else str(name) for name in ds.coords.get("mark", xr.DataArray([])).values]
    return ds.assign_coords(mark=names) if names else ds


def _name_directions(figure: go.Figure, ds: xr.Dataset) -> None:
    """Say between which models the first direction goes."""
    if ds.sizes.get("mark", 0) >= 3 and "collinear" in ds.attrs:
        first, second = (escape(str(name)) for name in ds.mark.values[:2])
        figure.update_xaxes(title=f"distance along u, {first} to {second}")
        figure.update_yaxes(title="distance along v, across u")


def _clear(figure: go.Figure, ds: xr.Dataset, minimum: Minimum) -> None:
    """Names of models that the minimum's cross would cover stand between its arms."""
    models = next((trace for trace in figure.data if getattr(trace, "mode", "") == "markers+text"), None)
    if models is None:
        return
    near = np.ones(ds.sizes["mark"], dtype=bool)
    for name, value in minimum.at.items():
        extent = float(ds[name].max() - ds[name].min())
        near &= np.abs(ds[f"mark_{name}"].values - value) < NORMAL_95 * minimum.errors[name] + LABEL * extent
    models.textposition = np.where(near, "top right", "top center").tolist()


LABEL = 0.08
"""Size of a label, as a share of the map."""


def line_figure(
    ds: xr.Dataset, variable: str, *, point: float | None = None, minimum: Minimum | None = None, revision: str = ""
) -> go.Figure:
    """A line with its two models, the selected point and the minimum."""
    ds, values, unit = _named(ds), ds[variable], axis(ds[variable])
    figure = blank(uirevision=revision, showlegend=False)
    hover = f"t %{{x:.3g}}<br>{unit} %{{y:.4g}}<extra></extra>"
    line = {"color": "#0072b2", "width": 2}
    figure.add_trace(go.Scatter(x=small(ds.t), y=small(values), mode="lines+markers", line=line, marker={"size": 4},
                                hovertemplate=hover, name=variable))  # fmt: skip
    names = [escape(str(name)) for name in ds.mark.values]
    marks = go.Scatter(
        x=small(ds.mark_t),
        y=small(ds[f"mark_{variable}"]),
        mode="markers+text",
        text=names,
        textposition="top center",
        marker={"size": 10, "symbol": "diamond", "color": "#d55e00"},
        hovertemplate=f"%{{text}}<br>{unit} %{{y:.4g}}<extra></extra>",
        cliponaxis=False,
        name="models",
    )
    figure.add_trace(marks)
    if minimum is not None and minimum.state == "inside":
        at, error = minimum.at["t"], minimum.errors["t"]
        figure.add_vrect(
            x0=at - NORMAL_95 * error, x1=at + NORMAL_95 * error, fillcolor="#009e73", opacity=0.25, line_width=0
        )
    if point is not None:
        height = float(values.interp(t=point))
        figure.add_trace(_point_trace(point, height))
    figure.update_xaxes(title=f"t: {names[0]} at 0, {names[1]} at 1")
    return figure.update_yaxes({"title": unit, **(log_axis(values.values) if variable == "loss" else {})})


def clients_figure(losses: Mapping[int, float]) -> go.Figure:
    """Loss of a point on the own samples of each client, by id."""
    ids, heights = [str(client) for client in losses], small(list(losses.values()))
    bars = bar(ids, heights, "clients", POINT, "client %{x}<br>loss of its own samples %{y:.4g}")
    figure = blank(height=SMALL, showlegend=False).add_trace(bars)
    figure.update_xaxes(title="client", type="category")
    return figure.update_yaxes(title="loss of its own samples", rangemode="tozero")


def is_close(ds: xr.Dataset, quantity: str) -> bool:
    """Whether a surface is exact, or interpolated with an error that hardly shows: that of the loss, or a small one.

    Losses are smooth; error rates may jump between two points, most where a model predicts one class for all samples.
    """
    ds, variable = quantity_of(ds, quantity)
    return variable == "loss" or "evaluated" not in ds.attrs or float(ds[f"{variable}_interpolation_share"]) <= CLOSE


def progress_text(done: int, total: int, how: str, *, stopped: bool, seconds: float | None) -> str:
    """How many points are evaluated, and the time left where it is known, or that it was stopped.

    Args:
        how: The points are evaluated: exact, or in bfloat16.
        seconds: Time left; None where it is not known.
    """
    if stopped:
        return f"stopped at {done} of {total} points"
    return f"{done} of {total} points {how}" + ("" if seconds is None else f", about {max(1, round(seconds))} s left")


def shown_text(ds: xr.Dataset, quantity: str, how: str) -> str:
    """How many points of a surface are shown, and what is known of those that are interpolated.

    Args:
        quantity: As for `quantity_of`.
        how: The points were evaluated: exact, or in bfloat16, maybe on some of the samples.
    """
    size, points, marks = " x ".join(map(str, ds.loss.shape)), *(ds.attrs.get(name, "") for name in NAMES[:2])
    more = f"; {statistics_text('points have', points, 'marks their', marks)}" if points == "recomputed" else ""
    if "precision_error" in ds.attrs:
        both, error = ds.attrs["precision_points"], ds.attrs["precision_error"]
        more += f"; at {both} points that were computed exactly as well, the loss is off by {error:.2g} of it at most"
    if "evaluated" not in ds.attrs:
        return f"shown: {size} points {how}{more}"
    ds, variable = quantity_of(ds, quantity)
    share, metric = ds[f"{variable}_interpolation_share"], "class_error" if variable == "class_shown" else variable
    scale = "logarithm" if ds.attrs[f"{metric}_interpolated_in"] == "log" else "values"
    return (
        f"shown: {size} points, interpolated from {ds.attrs['evaluated']} {how} ones; the largest error where "
        f"that was tested is {float(share):.2g} of the range of the {scale}{more}"
    )


def minimum_text(minimum: Minimum | None, unit: str) -> str:
    """A minimum in words, its error that of the fit and of the samples."""
    if minimum is None:
        return ""
    if minimum.state != "inside":
        return f"Minimum of the loss: none inside ({minimum.reason})."
    names = {"alpha": "u", "beta": "v"}
    at = ", ".join(
        f"{names.get(name, name)} {value:.3g} ± {minimum.errors[name]:.2g}" for name, value in minimum.at.items()
    )
    return f"Minimum of the loss between the grid points: {minimum.value:.4g} {unit} at {at} (standard errors)."


def _point_trace(x: float, y: float) -> go.Scatter:
    marker = {"size": 15, "symbol": "circle-open", "color": POINT, "line": {"width": 3}}
    return go.Scatter(x=[x], y=[y], mode="markers", marker=marker, name="point", hoverinfo="skip", showlegend=False)


def _minimum_trace(minimum: Minimum) -> go.Scatter:
    (x, y), (dx, dy) = minimum.at.values(), minimum.errors.values()
    bars = {"color": "white", "thickness": 1.5, "width": 4}
    return go.Scatter(
        x=[x],
        y=[y],
        error_x={"array": [NORMAL_95 * dx], **bars},
        error_y={"array": [NORMAL_95 * dy], **bars},
        mode="markers",
        marker={"symbol": "cross-thin", "size": 12, "line": {"color": "white", "width": 2}},
        name="minimum",
        showlegend=False,
        hovertemplate=f"minimum between the grid points<br>loss {minimum.value:.4g}<extra></extra>",
    )
