"""The view of the diagnosis: what drifts, by how much and what would help, with the way to the view that shows it."""

from __future__ import annotations

from html import escape

import panel as pn

from drift.diagnosis.causes import Cause
from drift.diagnosis.finding import Finding
from figures.explore.record.diagnosed import Diagnosed, diagnosed, view_of
from figures.explore.shell import html_table
from figures.explore.shell.as_figure import Request
from figures.explore.shell.view import View
from figures.explore.work.job import LongJob, OnJob
from figures.page.diagnosis_text import QUESTIONS, brackets, extent, interval, percent, verdict

ABOUT = (
    "Reading the record answers eight questions about a run in seconds to minutes. Testing causes also repeats "
    "recorded rounds with one setting changed and follows what gains: minutes to hours, and all of it is stored."
)
_RESULTS: dict[tuple[str, str, bool], Diagnosed] = {}
"""Diagnoses by run, its last round, and whether nothing was trained, for all pages."""


class DiagnosisView(View):
    """Verdict, causes and findings of one run."""

    name = "diagnosis"
    title = "Diagnosis"
    follows = frozenset({"runs", "growth"})

    def body(self) -> pn.Column:
        self._key: tuple[str, str] | None = None
        self._job: LongJob | None = None
        self._result: Diagnosed | None = None
        self.quick = self.button("Read the record", lambda _: self._start(quick=True), color="primary")
        self.full = self.button("Test causes by training", lambda _: self._start(quick=False))
        self.cancel = self.button("Cancel", lambda _: self._cancel(), visible=False)
        self.text = html_table.pane("state")
        self.answers = pn.Column(sizing_mode="stretch_width", css_classes=["answers"])
        buttons = pn.Row(self.quick, self.full, self.cancel, css_classes=["pickers"])
        return pn.Column(buttons, self.text, self.answers, sizing_mode="stretch_width")

    def update(self, changed: set[str]) -> None:
        run = self.explorer.recorded()
        key = (str(run.folder), run.head)
        if key == self._key:
            return
        self._key, self._job, self._result = key, None, None
        self._busy(False)
        known = _RESULTS.get((*key, False)) or _RESULTS.get((*key, True))
        if known is not None:
            self._show(known)
        else:
            self.answers.objects = []
            self._say(ABOUT)

    def figures(self) -> list[Request]:
        """The figures that answers name."""
        if self._result is None:
            raise LookupError("no diagnosis yet; read the record, then open this again.")
        run, diagnosis = self.explorer.run(), self._result.diagnosis
        titles: dict[str, str] = {}
        answers: list[Finding | Cause] = [*diagnosis.findings, *diagnosis.causes]
        for answer in answers:
            titles.setdefault(answer.figure, _title(answer))
        return [Request.from_runs(name, run, title=title) for name, title in titles.items() if name]

    def _start(self, *, quick: bool) -> None:
        run, key = self.explorer.run(), self._key
        self._busy(True)
        self._say("starting ...")

        def begin(on_progress: OnJob, on_end: OnJob) -> LongJob:
            def ended(job: LongJob) -> None:
                if job.state == "done" and key is not None:
                    _RESULTS[*key, quick] = job.result
                on_end(job)

            title = f"diagnosis of {run.name}"
            return self.explorer.jobs.long(diagnosed, run, quick, title=title, on_progress=on_progress, on_end=ended)

        wanted = lambda: key == self._key  # noqa: E731
        say = lambda text: self._say(f"steps of the present test: {text}")  # noqa: E731
        self._job = self.compute(begin, self._show, wanted=wanted, ended=self._ended, say=say)

    def _ended(self, job: LongJob) -> None:
        self._busy(False)
        self._say("Cancelled; what was computed is stored." if job.error is None else f"It failed: {job.error}")

    def _cancel(self) -> None:
        if self._job is not None:
            self._job.cancel()

    def _busy(self, busy: bool) -> None:
        self.quick.disabled = self.full.disabled = busy
        self.cancel.visible = busy

    def _say(self, text: str) -> None:
        self.text.object = html_table.lines([text])

    def _show(self, result: Diagnosed) -> None:
        self._busy(False)
        diagnosis, self._result = result.diagnosis, result
        self._say(f"{verdict(diagnosis)} {extent(diagnosis)}. {brackets()}")
        rows = [self._cause(cause, result) for cause in diagnosis.causes]
        heads = [_head("Causes that were tested, clear ones first")] if rows else []
        findings = [self._finding(finding, result) for finding in diagnosis.findings]
        self.answers.objects = [*heads, *rows, _head("What the record says"), *findings]

    def _cause(self, cause: Cause, result: Diagnosed) -> pn.Row:
        gain = interval(cause.gain.value, cause.gain.low, cause.gain.high, "nats")
        tested = "; ".join(filter(None, (cause.test, cause.followed, cause.note)))
        text = f"{'clear: ' if cause.clear else ''}gains {gain}, {percent(cause.share)} of the loss ({tested})"
        return self._answer(_title(cause), text, cause.command if cause.clear else "", cause, result)

    def _finding(self, finding: Finding, result: Diagnosed) -> pn.Row:
        number = ""
        if finding.value == finding.value:
            number = f"; {finding.measure} {interval(finding.value, finding.low, finding.high, finding.unit)}"
        return self._answer(_title(finding), f"{finding.statement}{number}", finding.suggestion, finding, result)

    def _answer(self, title: str, text: str, advice: str, answer: Finding | Cause, result: Diagnosed) -> pn.Row:
        """A line of an answer with a button that leads to the view that shows it."""
        more = f"<p class='remark'>To do: <code>{escape(advice)}</code></p>" if advice else ""
        content = html_table.pane()
        content.object = f"<p><b>{escape(title)}</b>: {escape(text.rstrip('.'))}.</p>{more}"
        link = view_of(answer, result)
        views = self.explorer.views
        if not link or link["view"] not in views:
            return pn.Row(content, sizing_mode="stretch_width", css_classes=["answer"])
        title = f"Show in {views[link['view']].title}"
        button = self.button(title, lambda _: self.selection.change(**link), width=140)
        return pn.Row(content, button, sizing_mode="stretch_width", css_classes=["answer"])


def _title(answer: Finding | Cause) -> str:
    return answer.title if isinstance(answer, Cause) else QUESTIONS.get(answer.name, answer.name)


def _head(text: str) -> pn.pane.HTML:
    return pn.pane.HTML(f"<h3>{escape(text)}</h3>", sizing_mode="stretch_width")
