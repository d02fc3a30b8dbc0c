"""Lines over rounds as a plotly figure: thin lines of seeds with their mean, or intervals, and what is selected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from drift.analyses.over_seeds import FEW_SEEDS, INTERVAL
from figures.explore.record.lines import Line, by_group, interval_lines, mean_line
from figures.explore.record.series import DERIVED
from figures.explore.record.thinned import thinned
from figures.interactive.curves import written_name
from figures.interactive.look import axis, blank, log_axis, round_axis, small
from figures.interactive.words import plain
from figures.looks import palette

DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
"""Of groups in their order, by which they are told from each other in grey."""

LOG = {"loss"}
"""Recorded numbers whose axis is logarithmic."""


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
    """A figure of the lines of `figures.explore.record.lines`.

    Args:
        shown: The lines; none give an empty figure.
        quantity: Name of their number, for the kind of axis.
        marks: What is selected.
        intervals: A band, the 95 % t interval of the mean over seeds, in place of a thin line per seed, where a group
            has at least `FEW_SEEDS`.
        difference: Whether the lines are differences to a reference.
    """
    layout: dict[str, Any] = {"dragmode": "select", "selectdirection": "h", "hoverdistance": -1, "selections": []}
    figure = blank(height=420, uirevision=f"{quantity} {difference}", selectionrevision=f"{marks.rounds}", **layout)
    for place, (group, members) in enumerate(by_group(shown).items()):
        look = {"color": palette.colour(members[0].run.label), "dash": DASHES[place % len(DASHES)]}
        figure.add_traces(_group(group, members, look, marks, len(shown), intervals))
    figure.add_trace(_handle(shown))
    title = plain(axis(shown[0].values)) if shown else ""
    figure.update_yaxes(title=title)
    figure.update_xaxes(round_axis(_rounds(shown)))
    if not difference and (quantity in LOG or (quantity in DERIVED and DERIVED[quantity].log)):
        figure.update_yaxes(log_axis(*(np.asarray(line.values.values) for line in shown)))
    figure.update_layout(shapes=shapes(marks, zero=difference or (quantity in DERIVED and DERIVED[quantity].zero)))
    return figure


def shapes(marks: Marks, *, zero: bool = False) -> list[dict[str, Any]]:
    """A line at the selected round, a shade over the selected rounds, and a line at zero."""
    over: dict[str, Any] = {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    parts: list[dict[str, Any]] = []
    if zero:
        line = {"color": palette.CLIENT, "width": 1, "dash": "dot"}
        parts.append({"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 0, "y1": 0, "line": line})
    if len(marks.rounds) == 2:
        first, last = sorted(marks.rounds)
        shade = {"type": "rect", "x0": first - 0.5, "x1": last + 0.5, "line": {"width": 0}}
        parts.append({**over, **shade, "fillcolor": palette.CLIENT, "opacity": 0.18})
    if marks.round is not None:
        line = {"color": SELECTED, "width": 1.5, "dash": "dot"}
        parts.append({**over, "x0": marks.round, "x1": marks.round, "line": line})
    return parts


SELECTED = "#d0006f"
"""Colour of what is selected, that of no method."""


def _group(
    group: str, members: Sequence[Line], look: dict[str, Any], marks: Marks, curves: int, intervals: bool
) -> list[dict[str, Any]]:
    """Traces of a group: its runs, and where there are several their mean."""
    label, several = written_name(group), len(members) > 1
    legend = {"name": _shortened(plain(label)), "legendgroup": group}
    traces = []
    intervals = intervals and len(members) >= FEW_SEEDS
    if not intervals:
        for line in members:
            bold = line.name == marks.run
            width = 3 if bold else 1 if several else 2
            traces.append(
                _trace(thinned(line.values, curves, marks.window))
                | legend
                | {"line": {**look, "width": width}, "opacity": 1 if bold or not several else 0.45}
                | {"showlegend": not several}
                | {"hovertemplate": f"{_wrapped(label)}<br>{plain(line.name)}<br>{_HOVER}"}
            )
    if several:
        mean = mean_line(members)
        if intervals:
            low, high = interval_lines(members)
            traces.append(_band(mean["round"].values, low, high, look["color"]) | legend | {"showlegend": False})
        text = f"mean of {len(members)} runs{f', band: its {INTERVAL}' * intervals}<br>{_HOVER}"
        traces.append(
            _trace(thinned(mean, curves, marks.window))
            | legend
            | {"line": {**look, "width": 2.4}, "hovertemplate": f"{_wrapped(label)}<br>{text}"}
        )
    return traces


_HOVER = "round %{x}: %{y:.4g}<extra></extra>"


def _trace(values: xr.DataArray) -> dict[str, Any]:
    """A line; it has gaps only where cohorts differ, not in rounds that were not evaluated."""
    whole = not values.attrs.get("different")
    mode = "lines+markers" if int(values.notnull().sum()) < 2 else "lines"
    return {"type": "scatter", "x": small(values["round"]), "y": small(values), "mode": mode, "connectgaps": whole}


def _band(rounds: np.ndarray, low: np.ndarray, high: np.ndarray, colour: str) -> dict[str, Any]:
    """The area between the ends of an interval, where it has ends."""
    inside = np.isfinite(low) & np.isfinite(high)
    x = np.concatenate([rounds[inside], rounds[inside][::-1]])
    y = np.concatenate([high[inside], low[inside][::-1]])
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    fill = {"fill": "toself", "fillcolor": f"rgba({red},{green},{blue},0.2)", "hoverinfo": "skip"}
    return {"type": "scatter", "x": small(x), "y": small(y), "mode": "lines", "line": {"width": 0}, **fill}


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


def _shortened(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


WIDEST = 44
"""Letters of a group's name in the legend; hovering shows all."""


def _wrapped(text: str) -> str:
    """A group's name in lines of a few settings."""
    parts = plain(text).split(", ")
    return "<br>".join(", ".join(parts[place : place + 4]) for place in range(0, len(parts), 4))
