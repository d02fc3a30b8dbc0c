"""Interactive curves over rounds: every seed a thin line, the mean of a method's seeds a thick one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from drift.analyses.landscapes.planes import average_line
from drift.analyses.rounds.numbers import OF_RECORD, quantity
from drift.runs.run import Run
from figures.interactive.lines import add_lines, lay_axes
from figures.interactive.look import blank, round_axis
from figures.looks import palette
from figures.selection.lines import lines
from landscape.plugins import unknown

DRIFTS = ("client_variance", "change_variance", "gain", "coherence")


def curves(runs: Sequence[Run], name: str) -> go.Figure:
    """A number over rounds for every method and seed: a recorded one, or one that follows from the record.

    Raises:
        ValueError: If there is no such number.
        LookupError: If no run was given, one has no complete round, or none has a value in any round.
    """
    figure = blank(height=340)
    _add_curves(figure, runs, name)
    if not any(np.isfinite(np.asarray(trace.y, dtype=float)).any() for trace in figure.data):
        raise LookupError(f"no run has a {figure.layout.yaxis.title.text} in any round.")
    return figure


def line_fma_ima(runs: Sequence[Run], *, window: int = 5, points: int = 41) -> go.Figure:
    """Test loss on the line from the last aggregate (t = 0) to the mean of the last `window` ones (t = 1).

    Source: IMA paper, Figs. 5c and 7c.
    """
    figure = blank(height=340)
    able = [run for run in runs if len(run.kept("globals")) >= 2 and not run.without_data]
    add_lines(figure, lines(able, lambda run: average(run, window=window, points=points)), over="t")
    figure.update_xaxes(title="t")
    figure.update_yaxes(type="log")
    for index, text in ((0, "last aggregate"), (1, f"mean of last {window}")):
        figure.add_vline(x=index, line={"width": 1, "dash": "dot", "color": palette.CLIENT})
        figure.add_annotation(x=index, y=0, yref="paper", yanchor="bottom", text=text, showarrow=False)
    return figure


def average(run: Run, *, window: int = 5, points: int = 41) -> xr.DataArray:
    """The loss on the line of `line_fma_ima`."""
    return run.cached(average_line, window=window, points=points).loss


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


def _add_curves(figure: go.Figure, runs: Sequence[Run], name: str, *, legend: bool = True, **cell: Any) -> None:
    """Add a number over rounds to a figure, or to one of its panels."""
    shown = lines(runs, lambda run: number(run, name))
    add_lines(figure, shown, legend=legend, **cell)
    figure.update_xaxes(round_axis(shown[-1].values["round"].values), **cell)
    lay_axes(figure, shown, name, **cell)
