"""Hessian eigenvalues at the global models of a run, over rounds."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
import xarray as xr
from plotly.subplots import make_subplots

from drift.analyses.curvature.eigenvalues import eigen_rounds
from drift.analyses.per_round import evenly_spaced
from drift.analyses.selected_samples import fewer
from drift.runs.run import Run
from figures.axes.spectra import UNCONVERGED
from figures.interactive.lines import add_lines
from figures.interactive.look import laid, log_axis, round_axis
from figures.selection.lines import lines


def curvature_rounds(runs: Sequence[Run], *, samples: int | None = None) -> go.Figure:
    """Largest Hessian eigenvalue of the training loss in five rounds, and its ratio to the fifth, in two panels.

    Source: FedLAW paper, Fig. 10.

    Args:
        runs: Runs to show, of any methods and seeds.
        samples: Training samples of the loss at most, selected at random; by default all.

    Raises:
        LookupError: If no run kept a global model.
    """
    able = [run for run in runs if run.kept("globals") and not run.without_data]
    if not able:
        raise LookupError("no run kept its global models; train with --set keep.globals=all.")
    figure = make_subplots(rows=1, cols=2, horizontal_spacing=0.1)
    figure.update_layout(laid(height=340))
    largest = lines(able, lambda run: eigenvalues(run, samples).eigenvalue.isel(rank=0, drop=True))
    add_lines(figure, largest, markers=True, row=1, col=1)
    ratios = lines(able, lambda run: eigenvalues(run, samples).ratio)
    add_lines(figure, ratios, markers=True, legend=False, row=1, col=2)
    figure.update_xaxes(round_axis(figure.data[-1].x))
    figure.update_yaxes(log_axis(*(trace.y for trace in figure.select_traces(col=1))), title="λ₁", row=1, col=1)
    figure.update_yaxes(title="λ₁ / λ₅", rangemode="tozero", row=1, col=2)
    if not all(bool(eigenvalues(run, samples).converged.all()) for run in able):
        figure.add_annotation(text=UNCONVERGED, x=1, y=1.12, xref="paper", yref="paper", showarrow=False)
    return figure


def eigenvalues(run: Run, samples: int | None = None) -> xr.Dataset:
    """The five largest Hessian eigenvalues of the training loss in five rounds that kept their global model."""
    rounds, count = evenly_spaced(run.kept("globals"), 5), fewer(run, "train", samples)
    return run.cached(eigen_rounds, rounds=rounds, k=5, split="train", samples=count, tolerance=1e-2)
