"""Drift by layer in the drift view: variances of every parameter tensor in a round, on demand."""

from __future__ import annotations

from typing import Any

import panel as pn
import plotly.graph_objects as go
import xarray as xr

from drift.analyses.rounds.variance import layer_drift
from drift.runs.run import Run
from figures.explore.shell.on_demand import OnDemand
from figures.explore.shell.plot import Plot
from figures.explore.shell.view import View
from figures.interactive.look import blank, small
from figures.interactive.words import plain

ABOUT = (
    "Client drift, update change and coherence of every parameter tensor of the model, from the recorded models of the "
    "clients of a round and of the round before it."
)

SHOWN = {
    "client_variance": ("client drift", "#009E73", "circle"),
    "change_variance": ("update change", "#D55E00", "diamond-open"),
}
"""Label, colour and symbol of the variances."""


class LayerPanel:
    """A button that computes the drift by layer, its picture, and the picker of the layers that are shown.

    Args:
        view: The view that it is part of.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._result: xr.Dataset | None = None
        self.demand = OnDemand(view, layer_drift, "drift by layer", ABOUT, self._show)
        self.layers = pn.widgets.MultiChoice(
            label="layers shown", options=[], placeholder="all", sizing_mode="stretch_width", visible=False
        )
        view.picks({"layers": self.layers})
        self.plot = Plot("client drift by layer, and update change", height=340, visible=False)
        self.withdraw = self.demand.withdraw
        self.panel = pn.Column(self.demand.panel, self.layers, self.plot, sizing_mode="stretch_width")

    def offer(self, run: Run, rounds: list[int]) -> None:
        """Offer the rounds of a run."""
        self.demand.offer(run, rounds=rounds)
        self.update()

    def update(self) -> None:
        """Show the selected layers in the selected round, or in the last one that was computed."""
        ds, selection = self._result, self._view.selection
        self.plot.visible = self.layers.visible = ds is not None
        if ds is None:
            return
        names = [str(name) for name in ds["layer"].values]
        with self._view.quietly():
            self.layers.param.update(options=names, value=[name for name in selection.layers if name in names])
        rounds = ds["round"].values.tolist()
        number = self._view.explorer.round()
        self.plot.show(layers_figure(ds, number if number in rounds else rounds[-1], self.layers.value))

    def _show(self, ds: xr.Dataset | None) -> None:
        self._result = ds
        self.update()


def layers_figure(ds: xr.Dataset, index: int, layers: list[str]) -> go.Figure:
    """Client-drift variance and update change of layers in a round, the input's layer first.

    Args:
        ds: Result of `drift.layer_drift`.
        index: One of its rounds.
        layers: Names of the layers that are shown; empty: all.
    """
    table = ds.sel(round=index)
    table = table.sel(layer=[name for name in table["layer"].values if not layers or str(name) in layers])
    names = [plain(str(name)) for name in table["layer"].values]
    figure = blank(height=340, uirevision="layers")
    about = [
        f"{size} parameters, gain {gain:.3g}, coherence {coherence:.3g}"
        for size, gain, coherence in zip(table["size"].values, table.gain.values, table.coherence.values, strict=True)
    ]
    for name, (label, colour, symbol) in SHOWN.items():
        hover = f"{label} of %{{x}} in round {index}<br>variance %{{y:.4g}}<br>%{{text}}<extra></extra>"
        marker = {"color": colour, "symbol": symbol, "size": 11}
        points: dict[str, Any] = {"x": names, "y": small(table[name]), "text": about, "mode": "markers"}
        figure.add_trace(go.Scatter(name=label, marker=marker, hovertemplate=hover, **points))
    figure.update_xaxes(type="category", title=f"layer, round {index}")
    return figure.update_yaxes(type="log", exponentformat="power", title="drift variance per parameter")
