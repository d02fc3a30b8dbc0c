"""The view of all runs: a table with settings, and curves of any number over rounds."""

from __future__ import annotations

from typing import Any

import panel as pn
import plotly.graph_objects as go

from drift.analyses.over_seeds import FEW_SEEDS, INTERVAL
from figures.explore.record.line_figure import MOST, Marks, line_figure
from figures.explore.record.run_table import RunTable
from figures.explore.record.series import Curves, curves
from figures.explore.shell import html_table
from figures.explore.shell.as_figure import Request
from figures.explore.shell.latest import Latest
from figures.explore.shell.plot import Plot
from figures.explore.shell.view import View
from figures.interactive.lines import written_name
from figures.interactive.look import axis
from figures.page.diagnosis_text import number
from figures.selection.lines import Line, Summary, in_span, summaries

FIRST, NEXT = 0.2, 1.0
"""Seconds of reading, at first and then, after which the page shows what is read so far, before it reads on."""

SEEDS = {"a line per seed": "", f"{INTERVAL} of {FEW_SEEDS} or more": "interval"}


class Runs(View):
    """Table of runs, and curves of the selected ones."""

    name = "runs"
    title = "Runs"
    follows = frozenset({"growth", "runs", "number", "reference", "round", "rounds", "runs.seeds", "runs.group"})

    def body(self) -> pn.Column:
        self._curves: Curves | None = None
        self._latest = Latest(self)
        self.table = RunTable(self)
        self.plot = Plot("curves over rounds", height=420)
        self.on_point(self.plot, lambda point: self.selection.change(round=int(point["x"])))
        self.plot.on("select", self.brushed)
        self.plot.on("zoom", self._zoomed)
        self._window: list[float] = []
        self.number = pn.widgets.Select(label="number", groups={"recorded": {}}, width=260)
        self.reference = self.picker("reference", "difference to", {"nothing": ""}, width=220)
        self.seeds = self.picker("runs.seeds", "seeds", SEEDS, width=200)
        self.span = pn.widgets.IntRangeSlider(label="rounds", start=0, end=1, width=220)
        self.every = self.button("all rounds", lambda _: self.selection.change(rounds=[]), visible=False)
        self.picks({"number": self.number})
        self.span.param.watch(lambda event: self._spanned(*event.new), "value_throttled")
        self.summary = html_table.pane("summary")
        self.differing = html_table.pane("differing")
        self.remarks = html_table.pane("remarks")
        pickers = pn.Row(self.number, self.reference, self.seeds, self.span, self.every, css_classes=["pickers"])
        panels = (self.table.panel, pickers, self.plot, self.remarks, self.summary, self.differing)
        return pn.Column(*panels, sizing_mode="stretch_width")

    def update(self, changed: set[str]) -> None:
        if changed & {"growth", "runs", "runs.group"}:
            self.table.update()
        if not self.selection.runs:
            self._curves = None
            raise LookupError(self._empty())
        self._ask(self._curves if not changed & {"growth", "runs", "number", "reference"} else None, FIRST)

    def _ask(self, read: Curves | None, seconds: float) -> None:
        """Show the curves that were read, or read them, for so many seconds at a time."""
        selection, runs = self.selection, self.explorer.runs
        names, quantity, reference = list(selection.runs), selection.number, selection.reference
        marks, intervals = self._marks(), bool(selection.look("runs.seeds"))

        def compute() -> tuple[Curves, go.Figure, list[Summary]]:
            read_now = read or curves(runs, names, quantity, reference, seconds)
            lines_now, compared = read_now.shown, read_now.compared
            figure = line_figure(lines_now, quantity, marks, intervals=intervals, difference=compared)
            return read_now, figure, summaries(lines_now, marks.rounds)

        self._latest.ask(compute, lambda results: self._show(*results))

    def figures(self) -> list[Request]:
        """The curves as a named figure."""
        runs = self.explorer.readable(self._empty())
        selection = self.selection
        seeds = selection.look("runs.seeds") or None
        reference = selection.reference if self._curves is not None and self._curves.compared else None
        rounds = selection.rounds or None
        options = {"number": selection.number, "reference": reference, "rounds": rounds, "seeds": seeds}
        return [Request.from_runs("numbers-rounds", runs, title="the curves", **options)]

    def _empty(self) -> str:
        if self.explorer.runs.names:
            return "No run is selected; tick some in the table."
        return self.explorer.runs.none_yet

    def _show(self, read: Curves, figure: go.Figure, results: list[Summary]) -> None:
        """Show what was read and computed, with what is selected."""
        self._curves = read if read.complete else None
        if not read.complete:
            self._ask(None, NEXT)
        rounds = [int(index) for line in read.shown for index in line.values["round"].values[[0, -1]]] or [0, 1]
        self._show_pickers(read, min(rounds), max(rounds))
        self.plot.show(figure, label=_label(read.shown, results))
        self.remarks.object = html_table.lines(read.remarks)
        summary = _summary(results, read.shown, self.selection.rounds, compared=read.compared)
        self.summary.object = summary if read.complete else ""
        self.differing.object = read.differing

    def _show_pickers(self, shown: Curves, first: int, last: int) -> None:
        selection = self.selection
        with self.quietly():
            self.number.groups = _with(shown.numbers, selection.number)
            self.number.value = selection.number
            known = [*shown.groups, *([selection.reference] if selection.reference not in shown.groups else [])]
            self.reference.options = {"nothing": ""} | {written_name(name): name for name in known if name}
            self.reference.value = selection.reference
            self.seeds.value = selection.look("runs.seeds")
            low, high = sorted(selection.rounds) if len(selection.rounds) == 2 else (first, last)
            last = max(last, first + 1)
            self.span.param.update(
                start=first, end=last, value=(min(max(low, first), last), max(min(high, last), first))
            )
            self.every.visible = bool(selection.rounds)

    def _marks(self) -> Marks:
        selection = self.selection
        return Marks(selection.run, selection.round, selection.rounds, self._window)

    def _zoomed(self, event: dict[str, Any]) -> None:
        """Draw all points of the part that is looked at, where curves are thinned out."""
        self._window = event["x"]
        if self._curves is not None and sum(line.values.size for line in self._curves.shown) > MOST:
            self.update(set())

    def _spanned(self, first: int, last: int) -> None:
        all_rounds = (first, last) == (self.span.start, self.span.end)
        self.pick(rounds=[] if all_rounds else [first, last])


def _with(offered: dict[str, dict[str, str]], name: str) -> dict[str, dict[str, str]]:
    """Numbers to choose from, with the selected one where no run has it."""
    known = {value for group in offered.values() for value in group.values()}
    return offered if name in known else {**offered, "not recorded": {name.replace("_", " "): name}}


def _label(shown: list[Line], results: list[Summary]) -> str:
    if not shown:
        return "no curve"
    name = str(shown[0].values.attrs.get("long_name", ""))
    means = "; ".join(f"{written_name(summary.group)[:60]} {summary.estimate.value:.3g}" for summary in results[:8])
    return f"{name} over rounds of {len(shown)} runs. Mean at the end: {means}"


def _summary(results: list[Summary], shown: list[Line], rounds: list[int], *, compared: bool) -> str:
    """HTML of the means of groups."""
    if not shown:
        return ""
    name = axis(shown[0].values)
    sizes = [in_span(line.values, rounds).size for line in shown]
    last = f"the last {' to '.join(map(str, sorted({min(sizes), max(sizes)})))} rounds"
    where = f"rounds {min(rounds)} to {max(rounds)}" if len(rounds) == 2 else last
    rows = ([written_name(summary.group), str(summary.seeds), _interval(summary, sign=compared)] for summary in results)
    return html_table.table(["group", "runs", f"{name} [{INTERVAL}]"], rows, caption=f"mean of {name} over {where}")


def _interval(summary: Summary, *, sign: bool) -> str:
    ends = (summary.estimate.value, summary.estimate.low, summary.estimate.high)
    value, low, high = (number(end, 3, sign=sign) for end in ends)
    return f"{value} [{low}, {high}]" if summary.estimate.number > 1 else value
