"""Lines over rounds as the explorer shows them: fewer points of long ones, and what is selected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from figures.interactive.lines import add_lines, lay_axes, zero_line
from figures.interactive.look import blank, round_axis
from figures.looks import palette
from figures.selection.lines import Line


@dataclass(frozen=True)
class Marks:
    """What is selected, as a figure shows it.

    Args:
        run: Run whose line is bold.
        round: Round that a line marks; None for none.
        rounds: First and last round of a shaded span; empty for none.
        window: First and last round that are on the screen; empty for all.
    """

    run: str = ""
    round: int | None = None
    rounds: Sequence[int] = ()
    window: Sequence[float] = ()


def line_figure(
    shown: Sequence[Line], quantity: str, marks: Marks, *, intervals: bool = False, difference: bool = False
) -> go.Figure:
    """A figure of lines, none of which give an empty one.

    Args:
        quantity: Name of their number, for the kind of axis.
        marks: What is selected.
        intervals, difference: As `figures.interactive.lines.add_lines` and `lay_axes` take them.
    """
    layout: dict[str, Any] = {"dragmode": "select", "selectdirection": "h", "hoverdistance": -1, "selections": []}
    figure = blank(height=420, uirevision=f"{quantity} {difference}", selectionrevision=f"{marks.rounds}", **layout)
    fewer = partial(thinned, curves=len(shown), window=marks.window)
    add_lines(figure, shown, intervals=intervals, bold=marks.run, thin=fewer)
    figure.add_trace(_handle(shown))
    figure.update_xaxes(round_axis(_rounds(shown)))
    lay_axes(figure, shown, quantity, difference=difference)
    return figure.update_layout(shapes=[*figure.layout.shapes, *shapes(marks)])


def shapes(marks: Marks, *, zero: bool = False) -> list[dict[str, Any]]:
    """A line at the selected round, a shade over the selected rounds, and a line at zero."""
    over: dict[str, Any] = {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    figure_shapes: list[dict[str, Any]] = [zero_line()] if zero else []
    if len(marks.rounds) == 2:
        first, last = sorted(marks.rounds)
        shade = {"type": "rect", "x0": first - 0.5, "x1": last + 0.5, "line": {"width": 0}}
        figure_shapes.append({**over, **shade, "fillcolor": palette.CLIENT, "opacity": 0.18})
    if marks.round is not None:
        line = {"color": SELECTED, "width": 1.5, "dash": "dot"}
        figure_shapes.append({**over, "x0": marks.round, "x1": marks.round, "line": line})
    return figure_shapes


SELECTED = "#d0006f"
"""Colour of what is selected, that of no method."""


def _handle(shown: Sequence[Line]) -> dict[str, Any]:
    """Points that are not seen: plotly lets a span of rounds be selected only where a trace has points."""
    rounds = _rounds(shown)
    ends = [rounds.min(), rounds.max()] if len(rounds) else []
    finite = np.concatenate([line.values.values for line in shown]) if shown else np.zeros(0)
    finite = finite[np.isfinite(finite)]
    height = [float(np.median(finite))] * len(ends) if len(finite) else [None] * len(ends)
    unseen = {"marker": {"opacity": 0, "size": 1}}
    about = {"type": "scatter", "mode": "markers", "hoverinfo": "skip", "showlegend": False, "name": "ends"}
    return {**about, "x": ends, "y": height, **unseen, "selected": unseen, "unselected": unseen}


def _rounds(shown: Sequence[Line]) -> np.ndarray:
    return np.concatenate([line.values["round"].values for line in shown]) if shown else np.zeros(0)


MOST = 24_000
"""Points of a figure from which its curves are thinned out: a browser draws them at once. (WebGL, which would draw
more, makes programs at run time, which the page's content security policy refuses.)"""

LEAST = 100
"""Points that each curve keeps at least."""


def thinned(values: xr.DataArray, curves: int, window: Sequence[float] = ()) -> xr.DataArray:
    """At most `MOST / curves` points of a curve: the smallest and the largest of each of equally many rounds.

    Args:
        values: Over `round`; rounds without a value are left out where points are.
        curves: Number of curves in the figure.
        window: First and last round that are looked at; only these and their neighbours are kept. Empty: all.
    """
    most = max(LEAST, MOST // max(1, curves))
    if len(window) == 2:
        inside = (values["round"].values >= min(window)) & (values["round"].values <= max(window))
        near = np.convolve(inside, [1, 1, 1], "same") > 0 if inside.any() else inside
        values = values.isel(round=near)
    if values.size <= most:
        return values
    edges = np.linspace(0, values.size, most // 2 + 1).astype(int)
    indices: set[int] = set()
    for first, last in pairwise(edges.tolist()):
        piece = values.values[first:last]
        if np.isfinite(piece).any():
            indices |= {first + int(np.nanargmin(piece)), first + int(np.nanargmax(piece))}
        else:
            indices.add(first)  # a gap stays one
    return values.isel(round=sorted(indices | {0, values.size - 1}))
