"""Interactive curves over rounds: every seed a thin line, the mean of a method's seeds a thick one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from drift.analyses.rounds.numbers import OF_RECORD, quantity
from drift.runs.run import Run
from figures.interactive.lines import add_lines, lay_axes
from figures.interactive.look import blank, round_axis
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
    shown = lines(runs, lambda run: number(run, name))
    add_lines(figure, shown)
    figure.update_xaxes(round_axis(shown[-1].values["round"].values))
    lay_axes(figure, shown, name)
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
