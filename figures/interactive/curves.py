"""Interactive curves over rounds: every seed a thin line, the mean of a method's seeds a thick one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr
from plotly.subplots import make_subplots

from drift.analyses.landscapes.planes import average_line
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.norms_and_weights import learned, update_norms
from drift.analyses.rounds.variance import drift_variances
from drift.runs.run import Run
from figures.interactive.look import axis, blank, laid, log_axis, round_axis, small
from figures.interactive.words import plain
from figures.looks import palette
from figures.selection.groups import groups

Part = Callable[[Run], xr.DataArray]
"""The curve of a run, over one dimension."""


@dataclass(frozen=True)
class Quantity:
    """A number of every round.

    Args:
        part: The numbers of a run, over round.
        log: Whether the axis is logarithmic.
        zero: Whether a line marks zero.
    """

    part: Part
    log: bool = False
    zero: bool = False


QUANTITIES = {
    "accuracy": Quantity(lambda run: run.metrics()["accuracy"].assign_attrs(long_name="test accuracy")),
    "loss": Quantity(lambda run: run.metrics()["loss"].assign_attrs(long_name="test loss"), log=True),
    "client_variance": Quantity(lambda run: run.cached(drift_variances).client_variance, log=True),
    "change_variance": Quantity(lambda run: run.cached(drift_variances).change_variance, log=True),
    "gain": Quantity(lambda run: run.cached(drift_variances).gain),
    "coherence": Quantity(lambda run: run.cached(coherence).coherence, zero=True),
    "gamma": Quantity(lambda run: run.cached(learned).gamma),
    "norm": Quantity(lambda run: run.cached(update_norms).end_norm),
}
"""What `curves` draws, by name."""

DRIFTS = ("client_variance", "change_variance", "gain", "coherence")


def curves(runs: Sequence[Run], quantity: str) -> go.Figure:
    """A quantity over rounds for every method and seed.

    Raises:
        ValueError: If there is no such quantity.
        LookupError: If no run was given, one has no complete round, or none has a value in any round.
    """
    if quantity not in QUANTITIES:
        raise ValueError(f"no quantity named {quantity!r}; known: {', '.join(QUANTITIES)}.")
    figure = blank(height=340)
    title = draw(figure, runs, QUANTITIES[quantity].part)
    if not any(np.isfinite(np.asarray(trace.y, dtype=float)).any() for trace in figure.data):
        raise LookupError(f"no run has a {title} in any round.")
    _lay(figure, quantity, title)
    return figure


def accuracy_rounds(runs: Sequence[Run]) -> go.Figure:
    """Test accuracy over rounds for every method and seed."""
    return curves(runs, "accuracy")


def drift_curves(runs: Sequence[Run]) -> go.Figure:
    """Client-drift variance and update change, Kalman gain and coherence over rounds, in four panels.

    Args:
        runs: Runs to show, of any methods and seeds.
    """
    figure = make_subplots(rows=2, cols=2, horizontal_spacing=0.12, vertical_spacing=0.14)
    figure.update_layout(laid(height=680))
    for place, name in enumerate(DRIFTS):
        row, col = place // 2 + 1, place % 2 + 1
        title = draw(figure, runs, QUANTITIES[name].part, legend=place == 0, row=row, col=col)
        _lay(figure, name, title, row=row, col=col)
    return figure


def line_fma_ima(runs: Sequence[Run], *, window: int = 5, points: int = 41) -> go.Figure:
    """Test loss on the line from the last aggregate (t = 0) to the mean of the last `window` ones (t = 1).

    Source: IMA paper, Figs. 5c and 7c.
    """
    figure = blank(height=340)
    able = [run for run in runs if len(run.kept("globals")) >= 2 and not run.without_data]
    title = draw(figure, able, lambda run: average(run, window=window, points=points), across="t")
    figure.update_xaxes(title="t")
    figure.update_yaxes(title=title, type="log")
    for place, text in ((0, "last aggregate"), (1, f"mean of last {window}")):
        figure.add_vline(x=place, line={"width": 1, "dash": "dot", "color": palette.CLIENT})
        figure.add_annotation(x=place, y=0, yref="paper", yanchor="bottom", text=text, showarrow=False)
    return figure


def average(run: Run, *, window: int = 5, points: int = 41) -> xr.DataArray:
    """The loss on the line of `line_fma_ima`."""
    return run.cached(average_line, window=window, points=points).loss


def draw(
    figure: go.Figure,
    runs: Sequence[Run],
    part: Part,
    *,
    across: str = "round",
    legend: bool = True,
    markers: bool = False,
    row: int | None = None,
    col: int | None = None,
) -> str:
    """Draw a curve for every run into a figure, or one of its panels; returns the label of the vertical axis."""
    title = ""
    for place, (name, group) in enumerate(groups(runs).items()):
        by_seed = {run.experiment.seed: part(run) for run in group}
        title = axis(next(iter(by_seed.values())))
        several = len(by_seed) > 1
        lines: list[tuple[xr.DataArray, str, dict[str, Any]]] = [
            (values, f"seed {seed}", {"width": 1 if several else 2, "opacity": 0.4 if several else 1})
            for seed, values in by_seed.items()
        ]
        if several:
            mean = xr.concat(list(by_seed.values()), "seed", join="outer").mean("seed")
            lines.append((mean, f"mean of {len(by_seed)} seeds", {"width": 2.4}))
        label, colour = written_name(name), palette.colour(name.partition(",")[0])
        dash = ("solid", "dash", "dot", "dashdot", "longdash")[place % 5 if "," in name else 0]
        for values, text, look in lines:
            trace = go.Scatter(
                x=small(values[across]),
                y=small(values),
                mode="lines+markers" if markers else "lines",
                connectgaps=True,
                name=plain(label),
                legendgroup=label,
                showlegend=legend and values is lines[-1][0],
                line={"color": colour, "dash": dash, "width": look.pop("width")},
                hovertemplate=f"{plain(label)}, {text}<br>{across} %{{x}}<br>{title} %{{y:.4g}}<extra></extra>",
                **look,
            )
            figure.add_trace(trace, row=row, col=col)
    return title


def written_name(name: str) -> str:
    """A group's name as legends write it."""
    method, comma, rest = name.partition(",")
    return palette.label(method) + comma + rest


def _lay(figure: go.Figure, quantity: str, title: str, *, row: int | None = None, col: int | None = None) -> None:
    quantity_ = QUANTITIES[quantity]
    figure.update_xaxes(round_axis(figure.data[-1].x), row=row, col=col)
    figure.update_yaxes(title=title, row=row, col=col)
    if quantity_.log:
        traces = figure.data if row is None else figure.select_traces(row=row, col=col)
        figure.update_yaxes(log_axis(*(trace.y for trace in traces)), row=row, col=col)
    if quantity_.zero:
        figure.add_hline(y=0, line={"width": 1, "dash": "dot", "color": palette.CLIENT}, row=row, col=col)
