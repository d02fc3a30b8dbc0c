"""The view of drift: client drift and update change, gain, coherence and locality over rounds, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import panel as pn
import plotly.graph_objects as go
import xarray as xr

from drift.analyses.cost_estimate import complete_options
from drift.analyses.counterfactual.counterfactual import counterfactual
from drift.analyses.decomposition.decomposition import decomposition
from drift.analyses.per_round import evenly_spaced
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.norms_and_weights import locality
from drift.runs.run import Run
from figures.explore.record import drift_figures
from figures.explore.record.layer_panel import LayerPanel
from figures.explore.record.line_figure import Marks, line_figure
from figures.explore.record.series import lines, of_record, recorded_runs
from figures.explore.shell import html_table
from figures.explore.shell.as_figure import Request
from figures.explore.shell.latest import Latest
from figures.explore.shell.on_demand import OnDemand
from figures.explore.shell.plot import Plot
from figures.explore.shell.view import View
from figures.explore.work.open_runs import OpenRuns

STEPS = "parts of the step"

PANELS = {
    "client_variance": "client-drift variance over rounds",
    "change_variance": "update change over rounds",
    "gain": "Kalman gain over rounds",
    "coherence": "local gradient coherence over rounds",
    "locality": "largest distance of a client to the mean of its cohort over rounds",
}
"""Numbers that are shown, with what their figures are called."""

ROUNDS = {"this round": "", "five rounds": "few", "all rounds": "all"}
MODELS = {"as recorded": "", "trained three times": "local"}
FEW = 5

FACTORS = (
    "How the squared error of the averaged model splits into bias, variance and covariance of its clients (IMA, "
    "theorem 1). Variance and covariance need clients that are trained again."
)
STEP = (
    "What the global step is made of, exactly: all clients are trained from the round's start, so that sampling drift, "
    "client drift and the server's part are known, with the loss that each costs."
)


@dataclass(frozen=True)
class Recorded:
    """Figures and remarks of the record."""

    figures: dict[str, go.Figure]
    distances: go.Figure | None
    remarks: list[str]


class Drift(View):
    """Curves of the drifts of the selected runs, and analyses of one of them on demand."""

    name = "drift"
    title = "Drift"
    pickers = 0
    follows = frozenset(
        {"growth", "runs", "round", "rounds", "client", "clients", "layers"} | {"drift.rounds", "drift.models"}
    )

    def body(self) -> pn.Column:
        self._latest = Latest(self)
        self.plots = {name: Plot(text, height=300) for name, text in PANELS.items()}
        self.distances = Plot("distance of each client to the mean of its cohort over rounds", height=300)
        for plot in (*self.plots.values(), self.distances):
            self.on_point(plot, self._clicked)
            plot.on("select", self.brushed)
        self.remarks = html_table.pane("remarks")
        self.rounds = self.picker("drift.rounds", "rounds", ROUNDS, width=140)
        self.models = self.picker("drift.models", "models of the clients", MODELS, width=170)
        self.factors = OnDemand(self, decomposition, "decomposition", FACTORS, self._show_factors)
        self.factors_plot = Plot("bias, variance and covariance of the averaged model", height=360, visible=False)
        self.layers = LayerPanel(self)
        self.step = OnDemand(self, counterfactual, STEPS, STEP, self._show_step)
        self.norms = Plot("norms of the parts of the global step", height=320)
        self.costs = Plot("loss that each part of the global step costs", height=320)
        self.clients = Plot("loss that the drift of each client costs", height=280, visible=False)
        self.on_point(self.clients, lambda point: self.selection.change(client=int(point["data"])))
        self.step_plots = _wrapped(self.norms, self.costs)
        self.step_plots.visible = False
        curves = _wrapped(*self.plots.values(), self.distances)
        pickers = pn.Row(self.rounds, self.models, css_classes=["pickers"])
        layers, step = self.layers.panel, (self.step.panel, self.step_plots, self.clients)
        panels = (layers, self.factors.panel, self.factors_plot, *step)
        return pn.Column(curves, self.remarks, pickers, *panels, sizing_mode="stretch_width")

    def update(self, changed: set[str]) -> None:
        selection, runs = self.selection, self.explorer.runs
        self.explorer.recorded()  # says why there is none
        if changed == {"layers"}:
            self.layers.update()
            return
        names, clients = list(selection.runs), _clients(selection)
        marks = Marks(selection.run, selection.round, selection.rounds)
        self._latest.ask(lambda: of_the_record(runs, names, marks, clients), self._show)
        self._show_pickers()
        self._offer()

    def figures(self) -> list[Request]:
        runs = self.explorer.readable("No run is selected; tick some in Runs.")
        gallery_names = ("variance-rounds", "coherence-rounds", "locality-rounds")
        texts = ("drift variances and gain", "coherence with its change point", "locality")
        requests = [Request.from_runs(name, runs, title=text) for name, text in zip(gallery_names, texts, strict=True)]
        return [*requests, *self._on_demand(self.explorer.run())]

    def _on_demand(self, run: Run) -> Iterator[Request]:
        """Figures of the analyses that are offered, of the rounds that they are offered for."""
        samples = complete_options(decomposition, run, {}).samples_per_client
        factors: dict[str, Any] = {"samples_per_client": samples}
        if self.selection.look("drift.models"):
            named = ("decomposition-rounds", "decomposition of models that are trained again", factors)
        else:
            named = ("bias-rounds", "bias of the recorded models", factors)
        by_layer: tuple[str, str, dict[str, Any]] = ("layers-drift", "drift by layer", {})
        for what, analyses in (("clients", (by_layer, named)), ("globals", (("counterfactual-rounds", STEPS, {}),))):
            try:
                rounds = self._rounds(run, what)
            except LookupError:  # the view says so
                continue
            for name, text, options in analyses:
                yield Request.from_runs(name, run, title=text, rounds=rounds, **options)

    def _show(self, read: Recorded) -> None:
        for name, plot in self.plots.items():
            plot.show(read.figures.get(name))
        self.distances.show(read.distances)
        self.remarks.object = html_table.lines(read.remarks)

    def _show_pickers(self) -> None:
        with self.quietly():
            self.rounds.value = self.selection.look("drift.rounds")
            self.models.value = self.selection.look("drift.models")

    def _offer(self) -> None:
        """Offer the analyses of the first run at the selected rounds."""
        for panel, what, more in (
            (self.layers, "clients", {}),
            (self.factors, "clients", {"estimator": "local"} if self.selection.look("drift.models") else {}),
            (self.step, "globals", {}),
        ):
            try:
                run = self.explorer.run()
                panel.offer(run, rounds=self._rounds(run, what), **more)
            except (LookupError, ValueError) as reason:
                panel.withdraw(str(reason))

    def _rounds(self, run: Run, what: str) -> list[int]:
        """Rounds to analyse, of those that kept clients or globals: the selected one, five, or all of the span.

        Raises:
            LookupError: If none of them kept them.
        """
        number, look = self.explorer.round(), self.selection.look("drift.rounds")
        available = run.kept(what)
        if not available:
            raise LookupError(f"{run.name} kept no {what}; train with --set keep.{what}=all.")
        if not look and number not in available:
            some = ", ".join(map(str, evenly_spaced(available, 8)))
            raise LookupError(
                f"round {number} of {run.name} kept no {what}; rounds that did are, among others: {some}."
            )
        if not look:
            return [number]
        span = self.selection.rounds
        first, last = sorted(span) if len(span) == 2 else (0, available[-1])
        inside = [index for index in available if first <= index <= last]
        if not inside:
            raise LookupError(f"no round from {first} to {last} of {run.name} kept {what}; select others, or all.")
        return evenly_spaced(inside, FEW if look == "few" else None)

    def _show_factors(self, ds: xr.Dataset | None) -> None:
        self.factors_plot.visible = ds is not None
        if ds is not None:
            self.factors_plot.show(
                drift_figures.factors_figure(ds, Marks("", self.selection.round, self.selection.rounds))
            )

    def _show_step(self, ds: xr.Dataset | None) -> None:
        self.step_plots.visible = self.clients.visible = ds is not None
        if ds is None:
            return
        self.norms.show(drift_figures.terms_figure(ds, "norm"))
        self.costs.show(drift_figures.terms_figure(ds, "loss_cost"))
        rounds = ds["round"].values.tolist()
        number = self.explorer.round()
        self.clients.show(
            drift_figures.client_costs_figure(ds, number if number in rounds else rounds[-1], _clients(self.selection))
        )

    def _clicked(self, point: dict[str, Any]) -> None:
        client = {} if point["data"] is None else {"client": int(point["data"])}
        self.selection.change(round=int(point["x"]), **client)


def of_the_record(runs: OpenRuns, names: list[str], marks: Marks, clients: list[int]) -> Recorded:
    """Figures of the drifts of runs, and of the clients of the first one; for a thread.

    Args:
        runs: The open runs.
        names: Names of the selected runs; clients are shown of the first.
        marks: What is selected.
        clients: Selected clients.
    """
    usable, remarks = recorded_runs(runs, names)
    figures = {name: line_figure(lines(usable, name)[0], name, marks) for name in PANELS} if usable else {}
    for figure in figures.values():
        figure.update_layout(height=300)
    first = usable.get(names[0])
    if first is None:
        return Recorded(figures, None, remarks)
    remarks.append(drift_figures.mark_critical_point(figures["coherence"], first, of_record(first, coherence)))
    distances = drift_figures.distances_figure(first, of_record(first, locality).distance, marks, clients)
    return Recorded(figures, distances, remarks)


def _clients(selection: Any) -> list[int]:
    return [*selection.clients, *([] if selection.client is None else [selection.client])]


def _wrapped(*plots: Plot) -> pn.Row:
    slots = [pn.Column(plot, css_classes=["slot"], sizing_mode="stretch_width") for plot in plots]
    return pn.Row(*slots, css_classes=["slots"], sizing_mode="stretch_width")
