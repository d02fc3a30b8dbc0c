"""Cosines between the updates of a round's clients, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from drift.analyses.per_round import evenly_spaced
from drift.analyses.rounds.coherence import coherence, pairwise
from drift.runs.run import Run
from figures.interactive.look import blank, small
from figures.interactive.slider import sliding
from figures.interactive.words import client_notes
from figures.looks import palette

CELLS = 20_000
"""Cosines of all rounds of a figure; of longer runs evenly spread rounds are shown."""

WRITTEN = 12
"""Rows up to which the numbers stand in the cells."""


def cells(
    x: Sequence[Any], y: Sequence[Any], z: np.ndarray, title: str, ends: tuple[float, float], **more: Any
) -> go.Heatmap:
    """A matrix as coloured cells, with its numbers in them where it is small.

    Args:
        x, y: Places or names of columns and rows.
        z: Numbers, rows by columns.
        title: Of the colour bar.
        ends: Numbers at the ends of the colours.
        more: Further words of a heat map; `hovertemplate` without its end.
    """
    bar = {"title": {"text": title}, "thickness": 12, "outlinewidth": 0, "len": 0.9}
    look = {"colorscale": palette.SIGNED, "texttemplate": "%{z:.2f}", "xgap": 1, "ygap": 1, "colorbar": bar, **more}
    look["hovertemplate"] = f"{look['hovertemplate']}<extra></extra>"
    if max(np.shape(z)) > WRITTEN:
        del look["texttemplate"]
    return go.Heatmap(x=x, y=y, z=small(z), zmin=ends[0], zmax=ends[1], **look)


def square(figure: go.Figure, x: str, y: str, **ticks: Any) -> go.Figure:
    """The figure of a matrix with the names of its axes, square cells and the first row above."""
    axes = {"constrain": "domain", "showgrid": False, "zeroline": False, **ticks}
    return figure.update_xaxes(title=x, **axes).update_yaxes(title=y, autorange="reversed", scaleanchor="x", **axes)


def coherence_matrix(run: Run, *, rounds: Sequence[int] | None = None) -> go.Figure:
    """Cosines between the updates of the clients of a round, with a slider over the rounds.

    Hovering names the round, both clients with their samples and labels, and the coherence of the whole cohort.

    Args:
        run: Run whose rounds are shown.
        rounds: Rounds shown; by default all with two clients or more, or evenly spread ones of many.

    Raises:
        LookupError: If there is no such round, or none has two clients.
    """
    measured = run.cached(coherence).coherence.dropna("round")  # NaN where a cohort has no pair
    recorded = [int(index) for index in measured["round"].values]
    usable = recorded if rounds is None else [index for index in rounds if index in recorded]
    if not usable:
        raise LookupError(f"no round of run {run.name} has two clients whose updates could be compared.")
    if rounds is None:
        usable = evenly_spaced(usable, max(2, CELLS // run.experiment.clients.per_round**2))
    figure = blank(height=420)
    sliding(figure, [[_matrix(run, index, float(measured.sel(round=index)))] for index in usable], usable)
    return square(figure, "client", "client", type="category")


def _matrix(run: Run, index: int, value: float) -> go.Heatmap:
    ds = pairwise(run, round=index)
    values, ids = ds.cosine.values, [str(client) for client in ds.client.values]
    notes = client_notes(run, index)
    words = [f"client {client}: {notes[int(client)].replace('<br>', ', ')}" for client in ids]
    pairs = np.array([[f"{a}<br>{b}" if a != b else a for b in words] for a in words], dtype=object)
    hover = f"round {index}, coherence {value:.3g}<br>%{{text}}<br>cosine %{{z:.3f}}"
    return cells(ids, ids, values, "cosine", (-1, 1), text=pairs, hovertemplate=hover)
