"""Interactive curves over rounds: every seed a thin line, the mean of a method's seeds a thick one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from drift.analyses.rounds.numbers import OF_RECORD, quantity
from drift.runs.run import Run
from figures.interactive.look import axis, blank, log_axis, round_axis, small
from figures.interactive.words import plain
from figures.looks import palette
from figures.selection.groups import written_name
from figures.selection.identity import seed_text
from figures.selection.lines import Line, by_group, lines, mean_line
from landscape.plugins import unknown

DRIFTS = ("client_variance", "change_variance", "gain", "coherence")


def curves(runs: Sequence[Run], name: str) -> go.Figure:
    """A number over rounds for every method and seed: a recorded one, or one that follows from the record.

    Raises:
        ValueError: If there is no such number.
        LookupError: If no run was given, one has no complete round, or none has a value in any round.
    """
    figure = blank(height=340)
    shown = lines(runs, lambda run: number(run, name))
    _add_lines(figure, shown)
    figure.update_xaxes(round_axis(shown[-1].values["round"].values))
    _lay_axes(figure, shown, name)
    if not any(np.isfinite(np.asarray(trace.y, dtype=float)).any() for trace in figure.data):
        raise LookupError(f"no run has a {figure.layout.yaxis.title.text} in any round.")
    return figure


def number(run: Run, name: str) -> xr.DataArray:
    """A number of every round of a run, from its stored results.

    Raises:
        ValueError: If the run has no such number; names those that there are.
    """
    if name in OF_RECORD:
        return run.cached(OF_RECORD[name])[name]
    recorded = run.metrics()
    if name not in recorded:
        raise ValueError(unknown("quantity", name, [*map(str, recorded), *OF_RECORD]))
    return recorded[name].assign_attrs(long_name=quantity(name).words)


def _add_lines(figure: go.Figure, shown: Sequence[Line]) -> None:
    """Add lines over rounds to a figure: a thin one per seed, and their mean."""
    seen: list[str] = []
    for group, members in by_group(shown).items():
        name, several = members[0].run.label, len(members) > 1
        line: dict[str, Any] = {"color": palette.colour(name), "dash": palette.plotly_dash(name, seen.count(name))}
        seen.append(name)
        label = written_name(group)
        trace = {"name": _shortened(plain(label)), "legendgroup": label, "mode": "lines"}
        traces = []
        for member in members:
            words = f"{_wrapped(label)}, seed {seed_text(member.run)}<br>{plain(member.name)}"
            look: dict[str, Any] = {"line": line | {"width": 1 if several else 2}, "opacity": 0.45 if several else 1}
            traces.append(_trace(member.values, words, trace) | look | {"showlegend": not several})
        if several:
            words = f"{_wrapped(label)}<br>mean of {len(members)} runs"
            look = {"line": line | {"width": 2.4}, "showlegend": True}
            traces.append(_trace(mean_line(members), words, trace) | look)
        figure.add_traces(traces)
    figure.update_yaxes(title=plain(axis(shown[0].values)) if shown else "")


def _lay_axes(figure: go.Figure, shown: Sequence[Line], name: str) -> None:
    """Make the vertical axis that of a quantity: logarithmic or not, with a dotted line at zero or not.

    Args:
        shown: The lines.
        name: Of their number.
    """
    values = [np.asarray(line.values.values, float) for line in shown]
    if quantity(name).log and not any((array < 0).any() for array in values):
        figure.update_yaxes(log_axis(*values))
    if quantity(name).zero:
        line = {"color": palette.CLIENT, "width": 1, "dash": "dot"}
        figure.add_shape({"type": "line", "xref": "x domain", "x0": 0, "x1": 1, "y0": 0, "y1": 0, "line": line})


def _trace(values: xr.DataArray, words: str, trace: dict[str, Any]) -> dict[str, Any]:
    """A line; it has gaps only where cohorts differ, not in rounds that were not evaluated."""
    dots = {"mode": "lines+markers"} if int(values.notnull().sum()) < 2 else {}
    points = {"type": "scatter", "x": small(values["round"]), "y": small(values)}
    hover = f"{words}<br>round %{{x}}: %{{y:.4g}}<extra></extra>"
    return trace | points | dots | {"connectgaps": not values.attrs.get("different"), "hovertemplate": hover}


def _shortened(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


WIDEST = 44
"""Letters of a group's name in the legend; hovering shows all."""


def _wrapped(text: str) -> str:
    """A group's name in lines of a few settings."""
    words = plain(text).split(", ")
    return "<br>".join(", ".join(words[start : start + 4]) for start in range(0, len(words), 4))
