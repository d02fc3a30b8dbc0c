"""Labels of the clients' training data, round by round."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from drift.analyses.rounds.labels import label_scatter
from drift.runs.run import Run
from figures.interactive.look import blank, round_axis, small
from figures.interactive.words import plain
from figures.looks import palette

LARGEST = 22
"""Diameter of the largest bubble, in pixels."""


def label_points(run: Run, *, rounds: int = 20) -> go.Figure:
    """A bubble for every client and class of the first rounds, its area the number of samples.

    The clients of a round are side by side; hovering names round, client, class and samples, and how far the round's
    labels are from all labels. Source: FedEve paper, Fig. 3a.

    Args:
        run: Run whose labels are shown.
        rounds: Rounds shown, from the first.

    Raises:
        ValueError: If no round is asked for.
        LookupError: If the run has no round, or its partition is not known.
    """
    ds = run.cached(label_scatter, rounds=rounds)
    classes, numbers = [plain(name) for name in ds["class"].values], ds["round"].values
    x, y, sizes, custom = [], [], [], []
    for row, counts in enumerate(ds["count"].values):
        cohort = np.flatnonzero(np.isfinite(counts).any(1))
        for index, client in enumerate(cohort):
            for column in np.flatnonzero(counts[client] > 0):
                x.append(numbers[row] + (index + 0.5) / len(cohort) - 0.5)
                y.append(column)
                sizes.append(counts[client, column])
                custom.append([numbers[row], ds.client.values[client], counts[client].sum(), row])
    custom_rows = np.asarray(custom, np.int64).reshape(-1, 4)
    within, between = ds.within_divergence.values, ds.between_divergence.values
    words = [f"divergence within {within[row]:.2f}, from all {between[row]:.2f} nats" for *_, row in custom_rows]
    area = np.asarray(sizes) / max(sizes, default=1)
    figure = blank(height=380, showlegend=False)
    figure.add_trace(
        go.Scatter(
            x=small(np.asarray(x, float)),
            y=small(np.asarray(y, np.int64)),
            mode="markers",
            marker={
                "size": small(LARGEST * np.sqrt(area)),
                "color": [_COLOURS[int(column) % len(_COLOURS)] for column in y],
                "line": {"width": 0},
                "opacity": 0.9,
            },
            customdata=small(np.concatenate([custom_rows[:, :3], np.asarray(sizes, np.int64).reshape(-1, 1)], axis=1)),
            meta={"client": 1},
            text=words,
            hovertext=[classes[int(column)] for column in y],
            hovertemplate=(
                "round %{customdata[0]}, client %{customdata[1]}<br>label %{hovertext}: %{customdata[3]} of its "
                "%{customdata[2]} samples<br>%{text}<extra></extra>"
            ),
            name="labels",
        )
    )
    ticks = list(range(0, len(classes), -(-len(classes) // 12)))
    figure.update_xaxes({**round_axis(numbers), "title": "round (its clients side by side)"}, zeroline=False)
    figure.update_yaxes(title="class", tickvals=ticks, ticktext=[classes[tick] for tick in ticks], zeroline=False)
    return figure


_COLOURS = (*palette.CLASSES[:-1], "#888888")
"""Those of classes, without the palest one: pages have dark and light grounds."""
