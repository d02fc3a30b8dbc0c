"""Confusion matrix, errors per class, and groups of samples on which two models disagree."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from figures.interactive.look import blank, small
from figures.interactive.words import plain

WRITTEN = 15
"""Classes up to which the numbers stand in the cells."""

RIGHT = {"client": "#E69F00", "other": "#0072B2", "neither": "#BBBBBB"}
"""Colours of who is right about a group; patterns tell them apart in grey."""


def confusion_map(ds: xr.Dataset, model: str, cell: tuple[int | None, int | None] = (None, None)) -> go.Figure:
    """Samples by class (rows) and predicted class, the diagonal pale; a click tells both.

    Args:
        ds: Result of `drift.confusion`.
        model: Name of a model of it.
        cell: Class and predicted class that are selected, None for all.
    """
    counts = ds["count"].sel(model=model).values
    names = [plain(name) for name in ds["class"].values]
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    figure = blank(height=380)
    figure.add_trace(
        go.Heatmap(
            x=list(range(len(names))),
            y=list(range(len(names))),
            z=small(shares),
            customdata=small(counts),
            zmin=0,
            zmax=1,
            colorscale="Viridis",
            colorbar={"title": {"text": "share of the class"}, "thickness": 12, "outlinewidth": 0, "len": 0.9},
            xgap=1,
            ygap=1,
            text=[[f"{int(value)}" if value else "" for value in row] for row in counts],
            texttemplate="%{text}" if len(names) <= WRITTEN else None,
            hovertext=[[f"class {a}, predicted {b}" for b in names] for a in names],
            hovertemplate="%{hovertext}<br>%{customdata} samples, %{z:.1%} of the class<extra></extra>",
            name="confusion",
        )
    )
    figure.add_shape(**_box(cell, len(names)))
    ticks = {"tickmode": "array", "tickvals": list(range(len(names))), "ticktext": names, "showgrid": False}
    figure.update_xaxes(title="predicted class", constrain="domain", zeroline=False, **ticks)
    figure.update_yaxes(title="class", autorange="reversed", scaleanchor="x", zeroline=False, **ticks)
    return figure


def class_errors(ds: xr.Dataset, labels: Mapping[str, str], truth: int | None = None) -> go.Figure:
    """Error per class, one bar per model.

    Args:
        ds: Result of `drift.confusion`.
        labels: Written names by the names of models.
        truth: Class that is selected.
    """
    figure = blank(height=260, barmode="group", bargap=0.2)
    names = [plain(name) for name in ds["class"].values]
    bold = [f"<b>{name}</b>" if place == truth else name for place, name in enumerate(names)]
    looks = ((RIGHT["other"], ""), (RIGHT["client"], "/"))
    for (model, label), (colour, pattern) in zip(labels.items(), looks, strict=False):
        figure.add_trace(
            go.Bar(
                x=list(range(len(names))),
                y=small(ds.class_error.sel(model=model).values),
                name=plain(label),
                text=None,
                hovertext=names,
                marker={"color": colour, "pattern": {"shape": pattern}},
                hovertemplate=f"{plain(label)}<br>class %{{hovertext}}<br>error %{{y:.1%}}<extra></extra>",
            )
        )
    figure.update_xaxes(title="class", tickmode="array", tickvals=list(range(len(names))), ticktext=bold)
    figure.update_yaxes(title="error", range=[0, 1], tickformat=".0%")
    return figure


def group_bars(ds: xr.Dataset, classes: list[str], labels: tuple[str, str], group: int | None = None) -> go.Figure:
    """Groups of like samples with two predictions, by size, and which model is right. Customdata: the group.

    Args:
        ds: Result of `drift.disagreement`.
        classes: Names of the classes.
        labels: Written names of the client's model and of the other one.
        group: Group that is selected.
    """
    count = ds.sizes["group"]
    figure = blank(height=max(220, 90 + 22 * count), barmode="stack", bargap=0.25)
    client, other = ds.group_client_right.values, ds.group_other_right.values
    parts = {"client": client, "other": other, "neither": 1 - client - other}
    written = {"client": f"{labels[0]} right", "other": f"{labels[1]} right", "neither": "both wrong"}
    labels_of_groups = ds.group_class.values.astype(int).tolist()
    names = [plain(classes[label] if label < len(classes) else label) for label in labels_of_groups]
    names = [name + _letter(labels_of_groups, place) for place, name in enumerate(names)]
    hover = [
        f"group {place + 1}: class {name}<br>{int(size)} samples with two predictions,<br>{share:.0%} of all like it"
        for place, (name, size, share) in enumerate(
            zip(names, ds.group_size.values, ds.group_share.values, strict=True)
        )
    ]
    for (part, values), pattern in zip(parts.items(), ("/", "", "x"), strict=True):
        figure.add_trace(
            go.Bar(
                y=list(range(count)),
                x=small((values * ds.group_size.values).round()),
                orientation="h",
                name=plain(written[part]),
                customdata=list(range(count)),
                hovertext=hover,
                marker={"color": RIGHT[part], "pattern": {"shape": pattern}},
                hovertemplate=f"%{{hovertext}}<br>%{{x}} {plain(written[part])}<extra></extra>",
            )
        )
    ticks = [f"<b>class {name}</b>" if place == group else f"class {name}" for place, name in enumerate(names)]
    figure.update_xaxes(title="samples with two predictions")
    figure.update_yaxes(tickmode="array", tickvals=list(range(count)), ticktext=ticks, autorange="reversed")
    return figure


def _letter(labels: list[int], place: int) -> str:
    """Which group of its class it is, in letters; nothing for the only one."""
    label = labels[place]
    return "" if labels.count(label) == 1 else f" ({chr(ord('a') + labels[:place].count(label))})"


def _box(cell: tuple[int | None, int | None], count: int) -> dict[str, object]:
    """A frame around the selected cell, row or column; invisible without one."""
    truth, predicted = cell
    low_y, high_y = (-0.5, count - 0.5) if truth is None else (truth - 0.5, truth + 0.5)
    low_x, high_x = (-0.5, count - 0.5) if predicted is None else (predicted - 0.5, predicted + 0.5)
    visible = truth is not None or predicted is not None
    look = {"line": {"color": "#D55E00", "width": 3}, "fillcolor": "rgba(0,0,0,0)", "visible": visible}
    return {"type": "rect", "x0": low_x, "x1": high_x, "y0": low_y, "y1": high_y, **look}
