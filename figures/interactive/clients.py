"""Interactive clouds of one point per client and round: its distance, its weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import xarray as xr
from plotly.subplots import make_subplots

from drift.analyses.per_round import evenly_spaced
from drift.analyses.rounds.norms_and_weights import aggregation_weights, locality, reweights
from drift.runs.run import Run
from figures.interactive.curves import number
from figures.interactive.lines import add_lines, written_name
from figures.interactive.look import axis, blank, laid, round_axis, small
from figures.interactive.words import client_notes, plain
from figures.looks import palette
from figures.selection.groups import groups
from figures.selection.lines import lines

POINTS = 1500
"""Clients drawn for one run; of longer runs evenly spread rounds are shown."""


def client_points(runs: Sequence[Run]) -> go.Figure:
    """Distance of every client to the mean of its cohort, over rounds; one run of each method.

    The mean is the size-weighted one. Hovering names the client, its weight, samples and labels, and the test loss.

    Args:
        runs: Runs to show, of any methods and seeds.
    """
    figure = blank(height=380)
    title = ""
    by_method = _first(runs)
    for (name, run), shift in zip(by_method.items(), _shifts(len(by_method)), strict=True):
        values = run.cached(locality).distance
        title = axis(values)
        figure.add_trace(_cloud(name, run, values, shift))
    figure.update_xaxes(round_axis(figure.data[-1].x))
    figure.update_yaxes(title=title)
    return figure


def weights_rounds(runs: Sequence[Run]) -> go.Figure:
    """Shrinking factor gamma and relative weight lambda of every client over rounds.

    Methods that learn neither are left out, unless there is no other.
    """
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08, row_heights=[0.4, 0.6])
    figure.update_layout(laid(height=560))
    learning = [run for run in runs if learns(run)] or list(runs)
    add_lines(figure, lines(learning, lambda run: number(run, "gamma")), row=1, col=1)
    title = ""
    first = _first(learning)
    for (name, run), shift in zip(first.items(), _shifts(len(first)), strict=True):
        values = run.cached(aggregation_weights).weights
        title = axis(values)
        figure.add_trace(_cloud(name, run, values, shift).update(showlegend=False), row=2, col=1)
    figure.update_yaxes(title=title, rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title="round", row=2, col=1)
    return figure


def learns(run: Run) -> bool:
    """Whether a run gave its clients other weights than their shares of samples."""
    away = reweights(run) or float(abs(run.cached(aggregation_weights).gamma - 1).max()) > 1e-4
    return away and run.experiment.clients.weighting == "samples"


def _first(runs: Sequence[Run]) -> dict[str, Run]:
    """The run with the smallest seed of every method."""
    return {name: group[0] for name, group in groups(runs).items()}


def _shifts(count: int) -> np.ndarray:
    """Horizontal shifts of the methods of one round, in rounds."""
    return (np.arange(count) - (count - 1) / 2) * min(0.16, 0.64 / max(1, count - 1))


def _cloud(name: str, run: Run, values: xr.DataArray, shift: float) -> go.Scatter:
    """One point for each client and round; customdata: round, client, relative weight, test loss after the round.

    Its meta names the column of the clients, so that a page can mark one.
    """
    weights = run.cached(aggregation_weights).weights
    per_round = max(1, int(np.isfinite(values.values).sum(1).max()))
    rounds = evenly_spaced(values["round"].values.tolist(), max(2, POINTS // per_round))
    values_of_rounds, weights = values.sel(round=rounds), weights.sel(round=rounds)
    rows, clients = np.nonzero(np.isfinite(values_of_rounds.values))
    label = written_name(name)
    at = np.asarray(rounds)[rows]
    loss = run.metrics()["loss"].sel(round=at).values
    custom = np.stack([at, clients, weights.values[rows, clients], loss], axis=1)
    notes = {index: client_notes(run, index) for index in rounds}
    return go.Scatter(
        x=small(at + shift),
        y=small(values_of_rounds.values[rows, clients]),
        customdata=small(custom),
        meta={"client": 1},
        text=[notes[index].get(client, "") for index, client in zip(at.tolist(), clients.tolist(), strict=True)],
        mode="markers",
        marker={"size": 5, "opacity": 0.6, "color": palette.colour(name.partition(",")[0])},
        name=plain(label),
        legendgroup=label,
        hovertemplate=(
            f"{plain(label)}, seed {run.experiment.seed}<br>round %{{customdata[0]}}, client %{{customdata[1]}}<br>"
            f"{axis(values)} %{{y:.4g}}<br>weight %{{customdata[2]:.3g}}<br>%{{text}}<br>"
            f"test loss after the round %{{customdata[3]:.4g}} {run.loss_units.removeprefix('1')}<extra></extra>"
        ),
    )
