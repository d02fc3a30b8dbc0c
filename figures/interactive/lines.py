"""Lines of runs in a plotly figure: thin ones of seeds with their mean, or means in intervals; each group its look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from drift.analyses.over_seeds import FEW_SEEDS, INTERVAL
from drift.analyses.rounds.numbers import quantity
from figures.interactive.look import axis, log_axis, small
from figures.interactive.words import plain
from figures.looks import palette
from figures.selection.groups import written_name
from figures.selection.identity import seed_text
from figures.selection.lines import Line, by_group, interval_lines, mean_line


def add_lines(
    figure: go.Figure,
    shown: Sequence[Line],
    *,
    intervals: bool = False,
    bold: str = "",
    thin: Callable[[xr.DataArray], xr.DataArray] = lambda values: values,
) -> None:
    """Add lines over rounds to a figure: a thin one per seed and their mean, or a band around it.

    Args:
        shown: The lines.
        intervals: A band, the 95 % t interval of the mean over seeds, in place of a thin line per seed, where a group
            has at least `FEW_SEEDS`.
        bold: Name of a run whose line is bold.
        thin: Leaves out points of long lines.
    """
    seen: list[str] = []
    for group, members in by_group(shown).items():
        name, several = members[0].run.label, len(members) > 1
        line = {"color": palette.colour(name), "dash": palette.plotly_dash(name, seen.count(name))}
        seen.append(name)
        label = written_name(group)
        trace = {"name": _shortened(plain(label)), "legendgroup": label, "mode": "lines"}
        banded = intervals and len(members) >= FEW_SEEDS
        traces = []
        for member in () if banded else members:
            strong = member.name == bold
            words = f"{_wrapped(label)}, seed {seed_text(member.run)}<br>{plain(member.name)}"
            traces.append(
                _trace(thin(member.values), words, trace)
                | {"line": {**line, "width": 3 if strong else 1 if several else 2}}
                | {"opacity": 1 if strong or not several else 0.45, "showlegend": not several}
            )
        if several:
            mean = mean_line(members)
            text = f"mean of {len(members)} runs{f', band: its {INTERVAL}' * banded}"
            if banded:
                traces.append(trace | _band(mean["round"].values, *interval_lines(members), line["color"]))
            traces.append(
                _trace(thin(mean), f"{_wrapped(label)}<br>{text}", trace)
                | {"line": {**line, "width": 2.4}, "showlegend": True}
            )
        figure.add_traces(traces)
    figure.update_yaxes(title=plain(axis(shown[0].values)) if shown else "")


def lay_axes(figure: go.Figure, shown: Sequence[Line], name: str, *, difference: bool = False) -> None:
    """Make the vertical axis that of a quantity: logarithmic or not, with a line at zero or not.

    Args:
        shown: The lines.
        name: Of their number.
        difference: Whether they are differences to a reference.
    """
    values = [np.asarray(line.values.values, float) for line in shown]
    if quantity(name).log and not difference and not any((array < 0).any() for array in values):
        figure.update_yaxes(log_axis(*values))
    if difference or quantity(name).zero:
        figure.add_shape(zero_line())


def zero_line() -> dict[str, Any]:
    """A dotted line at zero, as a shape."""
    line = {"color": palette.CLIENT, "width": 1, "dash": "dot"}
    return {"type": "line", "xref": "x domain", "x0": 0, "x1": 1, "y0": 0, "y1": 0, "line": line}


def _trace(values: xr.DataArray, words: str, trace: dict[str, Any]) -> dict[str, Any]:
    """A line; it has gaps only where cohorts differ, not in rounds that were not evaluated."""
    dots = {"mode": "lines+markers"} if int(values.notnull().sum()) < 2 else {}
    points = {"type": "scatter", "x": small(values["round"]), "y": small(values)}
    hover = f"{words}<br>round %{{x}}: %{{y:.4g}}<extra></extra>"
    return trace | points | dots | {"connectgaps": not values.attrs.get("different"), "hovertemplate": hover}


def _band(across: np.ndarray, low: np.ndarray, high: np.ndarray, colour: str) -> dict[str, Any]:
    """The area between the ends of an interval, where it has ends."""
    inside = np.isfinite(low) & np.isfinite(high)
    x = np.concatenate([across[inside], across[inside][::-1]])
    y = np.concatenate([high[inside], low[inside][::-1]])
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    fill = {"fill": "toself", "fillcolor": f"rgba({red},{green},{blue},0.2)", "hoverinfo": "skip", "showlegend": False}
    return {"type": "scatter", "x": small(x), "y": small(y), "mode": "lines", "line": {"width": 0}, **fill}


def _shortened(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


WIDEST = 44
"""Letters of a group's name in the legend; hovering shows all."""


def _wrapped(text: str) -> str:
    """A group's name in lines of a few settings."""
    words = plain(text).split(", ")
    return "<br>".join(", ".join(words[start : start + 4]) for start in range(0, len(words), 4))
