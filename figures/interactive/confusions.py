"""Confusion matrix, errors per class, and groups of samples on which two models disagree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from figures.interactive.look import COLOURS, bar, blank, named, small
from figures.interactive.matrix import cells, square
from figures.interactive.words import plain

RIGHT = {"client": "#E69F00", "other": "#0072B2", "neither": "#BBBBBB"}
"""Colours of who is right about a group; patterns tell them apart in grey."""


def confusion_map(ds: xr.Dataset, model: str, cell: tuple[int | None, int | None] = (None, None)) -> go.Figure:
    """Samples by class (rows) and predicted class, the diagonal pale; a click tells both.

    Args:
        ds: Result of `drift.confusion`.
        model: Name of a model of it.
        cell: Class and predicted class that are selected, None for all.
    """
    return counts_map(ds["count"].sel(model=model).values, ds["class"].values, cell)


def counts_map(
    counts: np.ndarray, classes: Iterable[object], cell: tuple[int | None, int | None] = (None, None), height: int = 380
) -> go.Figure:
    """As `confusion_map`, of counts by class (rows) and predicted class; a class without samples has no shares."""
    names, totals = [plain(name) for name in classes], counts.sum(1, keepdims=True)
    shares = np.divide(counts, totals, out=np.full(counts.shape, np.nan), where=totals > 0)
    positions = list(range(len(names)))
    matrix = cells(
        positions,
        positions,
        shares,
        "share of the class",
        (0, 1),
        colorscale=COLOURS,
        customdata=small(counts),
        text=[[f"{int(value)}" if value else "" for value in row] for row in counts],
        texttemplate="%{text}",
        hovertext=[[f"class {a}, predicted {b}" for b in names] for a in names],
        hovertemplate="%{hovertext}<br>%{customdata} samples, %{z:.1%} of the class",
        name="confusion",
    )
    figure = blank(height=height).add_trace(matrix).add_shape(**_box(cell, len(names)))
    return square(figure, "predicted class", "class", **named(names, positions=positions))


def class_errors(ds: xr.Dataset, labels: Mapping[str, str], truth: int | None = None) -> go.Figure:
    """Error per class, one bar per model.

    Args:
        ds: Result of `drift.confusion`.
        labels: Written names by the names of models.
        truth: Class that is selected.
    """
    errors = {label: ds.class_error.sel(model=model).values for model, label in labels.items()}
    return error_bars(errors, ds["class"].values, truth)


def error_bars(
    errors: Mapping[str, np.ndarray],
    classes: Iterable[object],
    truth: int | None = None,
    colours: Sequence[str] = (RIGHT["other"], RIGHT["client"]),
) -> go.Figure:
    """As `class_errors`, of errors (C,) by the written name of a model; a click tells the number of the class."""
    figure = blank(height=260, barmode="group", bargap=0.2)
    names = [plain(name) for name in classes]
    positions, bold = list(range(len(names))), () if truth is None else (names[truth],)
    for (label, values), colour, pattern in zip(errors.items(), colours, ("", "/"), strict=False):
        hover = f"{plain(label)}<br>class %{{hovertext}}<br>error %{{y:.1%}}"
        figure.add_trace(bar(positions, small(values), plain(label), colour, hover, pattern=pattern, hovertext=names))
    figure.update_xaxes(title="class", **named(names, bold, positions))
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
    positions = list(range(count))
    figure = blank(height=max(220, 90 + 22 * count), barmode="stack", bargap=0.25)
    client, other = ds.group_client_right.values, ds.group_other_right.values
    right = {"client": client, "other": other, "neither": 1 - client - other}
    written = {"client": f"{labels[0]} right", "other": f"{labels[1]} right", "neither": "both wrong"}
    labels_of_groups = ds.group_class.values.astype(int).tolist()
    names = [plain(classes[label] if label < len(classes) else label) for label in labels_of_groups]
    names = [name + _letter(labels_of_groups, index) for index, name in enumerate(names)]
    texts = [
        f"group {index + 1}: class {name}<br>{int(size)} samples with two predictions,<br>{share:.0%} of all like it"
        for index, (name, size, share) in enumerate(
            zip(names, ds.group_size.values, ds.group_share.values, strict=True)
        )
    ]
    for (which, values), pattern in zip(right.items(), ("/", "", "x"), strict=True):
        hover = f"%{{hovertext}}<br>%{{x}} {plain(written[which])}"
        sizes = small((values * ds.group_size.values).round())
        trace = bar(sizes, positions, plain(written[which]), RIGHT[which], hover, pattern=pattern, orientation="h")
        figure.add_trace(trace.update(customdata=positions, hovertext=texts))
    ticks = [f"class {name}" for name in names]
    bold = () if group is None else ticks[group : group + 1]
    figure.update_xaxes(title="samples with two predictions")
    return figure.update_yaxes(autorange="reversed", **named(ticks, bold, positions))


def _letter(labels: list[int], index: int) -> str:
    """Which group of its class it is, in letters; nothing for the only one."""
    label = labels[index]
    return "" if labels.count(label) == 1 else f" ({chr(ord('a') + labels[:index].count(label))})"


def _box(cell: tuple[int | None, int | None], count: int) -> dict[str, object]:
    """A frame around the selected cell, row or column; invisible without one."""
    truth, predicted = cell
    low_y, high_y = (-0.5, count - 0.5) if truth is None else (truth - 0.5, truth + 0.5)
    low_x, high_x = (-0.5, count - 0.5) if predicted is None else (predicted - 0.5, predicted + 0.5)
    visible = truth is not None or predicted is not None
    look = {"line": {"color": "#D55E00", "width": 3}, "fillcolor": "rgba(0,0,0,0)", "visible": visible}
    return {"type": "rect", "x0": low_x, "x1": high_x, "y0": low_y, "y1": high_y, **look}
