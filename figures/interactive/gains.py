"""The Kalman gain of FedEve's fusion over all rounds, as boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from drift.analyses.rounds.variance import drift_variances
from drift.runs.run import Run
from figures.interactive.lines import written_name
from figures.interactive.look import blank, small
from figures.interactive.words import plain
from figures.looks import palette
from figures.selection.groups import groups


def gain_boxes(runs: Sequence[Run], *, skip: int = 1) -> go.Figure:
    """A box of the Kalman gain over rounds and seeds for every method, and for every setting where they differ.

    A point is a round; hovering names it, its seed and its gain. Source: FedEve paper, Fig. 4.

    Args:
        runs: Runs to show, of any methods and seeds.
        skip: First rounds left out, in which the server has no momentum yet.

    Raises:
        LookupError: If no run was given, or one has no complete round.
    """
    figure = blank(height=380, showlegend=False)
    for name, group in groups(runs).items():
        label = written_name(name)
        gains = [run.cached(drift_variances).gain.isel(round=slice(skip, None)) for run in group]
        seeds = np.repeat([run.experiment.seed for run in group], [gain.size for gain in gains])
        numbers = np.concatenate([array["round"].values for array in gains])
        figure.add_trace(
            go.Box(
                y=small(np.concatenate([array.values for array in gains])),
                customdata=small(np.stack([numbers, seeds], axis=1)),
                name=plain(label),
                legendgroup=label,
                boxpoints="all",
                pointpos=0,
                jitter=0.5,
                marker={"size": 3, "opacity": 0.45, "color": palette.colour(name.partition(",")[0])},
                line={"width": 1.5},
                hoveron="boxes+points",
                hovertemplate=(
                    f"{plain(label)}, seed %{{customdata[1]}}<br>round %{{customdata[0]}}<br>Kalman gain %{{y:.3f}}"
                    "<extra></extra>"
                ),
            )
        )
    figure.update_yaxes(title="Kalman gain", range=[0, 1.02])
    return figure
