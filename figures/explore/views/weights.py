"""The aggregate of a round at any weights: sliders, a point on the triangle of three clients, the usual weights."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import Any, ClassVar

import panel as pn

from drift.analyses.landscapes import round_weights
from drift.analyses.landscapes.round_weights import Weights
from drift.runs.run import Run
from figures.explore.plane.point_panel import PointPanel, in_words
from figures.explore.plane.queries import COHORT, Numbers, PointQuery
from figures.explore.plane.triangles import TrianglePanel
from figures.explore.shell.as_figure import Request
from figures.explore.shell.sliders import Sliders
from figures.explore.shell.view import View
from figures.explore.work.job import LongJob
from figures.explore.work.versions import round_version

SAMPLES = {"1000": "1000 samples", "": "2000 samples", "all": "all samples"}
NO_PROXY = (
    "FedLAW's weights and the best ones are learned on a proxy set; this run has none: train with "
    "<code>--set proxy.per_class=10</code>."
)
HISTORY = 30
"""Weights that were tried, in the list."""


class WeightsView(View):
    """Sliders, triangle, usual weights and the numbers of the aggregate."""

    name = "weights"
    title = "Weights"
    follows: ClassVar[frozenset[str]] = frozenset(
        {"runs", "round", "weights", "gamma", "clients", "split", "growth", "weights.samples"}
    )

    def body(self) -> pn.Column:
        self._where: tuple[Any, ...] | None = None
        self._ids: list[int] = []
        self._recorded = self._sizes = self._shown = Weights(1.0, ())
        self._history: dict[str, Weights] = {}
        self._new_query = False
        self._title = ""
        self._learning: LongJob | None = None
        self.sliders = Sliders(self.guarded(self._moved), sizing_mode="stretch_width", margin=(0, 8))
        usual = (
            ("FedAvg", lambda: self._sizes),
            ("uniform", lambda: Weights(1.0, (1 / len(self._ids),) * len(self._ids))),
            ("the round's own", lambda: self._recorded),
        )
        press = lambda name, act: self.button(name, lambda _: act(name), margin=(2, 3))  # noqa: E731
        self.buttons = [press(name, lambda title, take=take: self._go(take(), title)) for name, take in usual]
        learned = {"FedLAW's": round_weights.learned_weights, "best on the proxy set": round_weights.proxy_weights}
        self.learning = [press(name, partial(self._learn, function)) for name, function in learned.items()]
        self.split = self.picker("split", "evaluated on", ["test"], width=90, margin=(2, 5))
        samples = {text: key for key, text in SAMPLES.items()}
        self.samples = self.picker("weights.samples", "at most", samples, width=140, margin=(2, 5))
        self.tried = pn.widgets.Select(label="tried so far", options={}, size=6, sizing_mode="stretch_width")
        self.tried.param.watch(self.guarded(self._back), "value")
        self.absent = pn.pane.HTML(f"<p>{NO_PROXY}</p>", css_classes=["muted"], visible=False, margin=(0, 8))
        self.absent.sizing_mode = "stretch_width"
        self.step = pn.pane.HTML("", sizing_mode="stretch_width", margin=(0, 8))
        self.triangle = TrianglePanel(self, self._dragged)
        self.point = PointPanel(self, "weights", self._numbers, "The aggregate")
        half = {"sizing_mode": "stretch_width", "styles": {"flex": "1 1 320px", "width": "auto"}}
        left, right = (
            pn.Column(self.sliders, self.tried, **half),
            pn.Column(self.triangle.status, self.triangle.plot, **half),
        )
        halves = pn.Row(left, right, css_classes=["wrap"], sizing_mode="stretch_width")
        buttons = pn.Row(*self.buttons, *self.learning, css_classes=["wrap"])
        controls = pn.Row(self.split, self.samples, css_classes=["wrap"])
        panels = [controls, buttons, self.absent, self.step, halves, self.point.panel]
        return pn.Column(*panels, sizing_mode="stretch_width")

    def update(self, changed: set[str]) -> None:
        recorded, number, run = self.explorer.recorded(), self.explorer.round(), self.explorer.run()
        record = recorded.round(number)
        ids = sorted(record.ids.tolist())
        if not ids or not run.experiment.keep.keeps_clients(number, run.experiment.rounds):
            raise LookupError(
                f"round {number} of {run.name} kept no clients; select another round, or train with "
                "--set keep.clients=all."
            )
        where = (round_version(run, number), number, ids)
        if where != self._where:
            self._arrive(run, record, ids)
            self._new_query = self._where is not None and self._where[:2] != where[:2]
            self._where = where
        weights, gamma = list(self.selection.weights), float(self.selection.gamma)
        asked_elsewhere = self._new_query and not changed & {"weights", "gamma"}
        if "weights" in changed or "gamma" in changed:
            self._new_query = False
        if len(weights) == len(ids) and not asked_elsewhere and abs(sum(weights)) > 1e-12:
            self._show(Weights(gamma, Weights.from_values(weights).shares), run, done=True)
        else:
            self._show(self._recorded, run, done=True)

    def figures(self) -> list[Request]:
        if self._where is None:
            raise LookupError("nothing is evaluated yet.")
        query, shown = self._query(), self._shown
        options: dict[str, Any] = {"round": query.round, "weights": list(shown.shares), "gamma": shown.gamma}
        options |= {"split": query.split, "samples": query.samples}
        return [Request.from_runs("weights-round", self.explorer.run(), **options)]

    def _arrive(self, run: Run, record: Any, ids: list[int]) -> None:
        """Offer what a round has."""
        self._ids, self._history, self._title = ids, {}, ""
        self._recorded, self._sizes = round_weights.own_weights(record), round_weights.by_size(run, record)
        has_proxy = run.experiment.proxy is not None
        splits = ["test", "train", *(["proxy"] if has_proxy else [])]
        with self.quietly():
            self.split.param.update(
                options=splits, value=self.selection.split if self.selection.split in splits else "test"
            )
            self.samples.value = self.selection.look("weights.samples") if self._known_samples() else ""
            self.tried.param.update(options={}, value=None)
        for button in self.learning:
            button.disabled = not has_proxy
        self.learning[0].disabled = not has_proxy and run.method.name() != "fedlaw"
        self.absent.visible = not has_proxy
        self._tell_step(run, record.index)

    def _tell_step(self, run: Run, number: int) -> None:
        """Say what the round really did, once its models are read."""
        taken = self._recorded
        terms = ", ".join(f"{share:.3g}" for share in taken.shares[:12]) + (" ..." if len(taken.shares) > 12 else "")
        text = f"The round took gamma {taken.gamma:.4g} and the shares {terms} ({escape(run.label)})"
        self.step.object = f"<p>{text}.</p>"

        def show(away: float) -> None:
            more = "" if away < 1e-3 else f"; its end lies {away:.0%} of the step beside that aggregate"
            self.step.object = f"<p>{text}{more}.</p>"

        self.ask(round_weights.step_beside, run, number, show, ended=lambda _: None, priority=30)

    def _known_samples(self) -> bool:
        return self.selection.look("weights.samples") in SAMPLES

    def _query(self) -> PointQuery:
        count = self.selection.look("weights.samples")
        samples = None if count == "all" else int(count) if count.isdigit() else 2000
        split = self.selection.split if self.selection.split in ("test", "train", "proxy") else "test"
        return PointQuery(self.explorer.round(), COHORT, split, samples)

    def _show(self, weights: Weights, run: Run, *, done: bool) -> None:
        """Show weights everywhere and evaluate their aggregate."""
        self._shown = weights
        names = [f"client {client}" for client in self._ids]
        if done:
            self.sliders.move(names, weights.shares, weights.gamma)
        self.point.show(run, self._query(), weights.row, settled=done, names=names, ids=self._ids)
        self.triangle.show(run, self._query(), self._ids, self.selection.clients, weights, done=done)

    def _moved(self, weights: list[float], gamma: float, done: bool) -> None:
        self._dragged(Weights(gamma, Weights.from_values(weights).shares), done)

    def _dragged(self, weights: Weights, done: bool) -> None:
        """A slider or the ring moves, or is released."""
        self._title = ""
        if done:
            self._go(weights, "")
        else:
            self._show(weights, self.explorer.run(), done=False)

    def _go(self, weights: Weights, title: str) -> None:
        """Select weights: all views follow, and the back button leads here."""
        if self._learning is not None:
            self._learning.cancel()  # its weights would take the place of these
        self._title, self._new_query = title, False
        self.selection.change(weights=[round(share, 6) for share in weights.shares], gamma=round(weights.gamma, 6))

    def _learn(self, function: Any, title: str) -> None:
        run, number, where = self.explorer.run(), self.explorer.round(), self._where
        if self._learning is not None:
            self._learning.cancel()
        self.say(f"{title} weights are learned on the proxy set ...")

        def ended(job: LongJob) -> None:
            if job.error is not None or job is self._learning:
                self.say(str(job.error or ""))

        def show(weights: Weights) -> None:
            self.say()
            if where is not None and self._where == where:
                self._go(weights, title)

        job_title = f"{title} weights of round {number}"
        self._learning = self.ask(function, run, number, show, ended=ended, title=job_title, priority=5)

    def _numbers(self, row: list[float], numbers: Numbers) -> None:
        """Remember what was tried, once its numbers are there."""
        weights = Weights.from_values(row)
        title = self._title or ", ".join(f"{share:.2f}" for share in weights.shares[:8])
        gamma = "" if abs(weights.gamma - 1) < 1e-6 else f", gamma {weights.gamma:.3g}"
        text = f"{in_words(numbers)}: {title}{gamma}"
        if next(iter(self._history), None) != text:
            self._history = dict([(text, weights), *((t, w) for t, w in self._history.items() if t != text)][:HISTORY])
        with self.quietly():
            self.tried.param.update(options=list(self._history), value=text)

    def _back(self, event: Any) -> None:
        if not self._quiet and event.new in self._history:
            self._go(self._history[event.new], event.new.partition(": ")[2].partition(", gamma")[0])
