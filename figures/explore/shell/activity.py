"""What is being computed: one line per job with its progress, its time left and a button that cancels it."""

from __future__ import annotations

import html
import time

import panel as pn

from figures.explore.work.job import LongJob
from figures.explore.work.jobs import Jobs

PATIENCE = 1.0
"""Seconds that a job takes before it gets a line."""
LINES = 4
"""Jobs that get a line; the others are counted."""


class Activity:
    """Lines for the jobs that run.

    Args:
        jobs: Those of all pages.
    """

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._since: dict[LongJob, float] = {}
        self._lines: dict[LongJob, tuple[pn.pane.HTML, pn.Row]] = {}
        self._rest = pn.pane.HTML("", css_classes=["notice"], visible=False)
        self.panel = pn.Column(css_classes=["activity"], sizing_mode="stretch_width", visible=False)

    def update(self) -> None:
        """Show the jobs of now."""
        now, active = time.monotonic(), [job for job in self._jobs.active if job.title]
        self._since = {job: self._since.get(job, now) for job in active}
        shown = [job for job in active if now - self._since[job] >= PATIENCE]
        lines = {job: self._lines.get(job) or self._line(job) for job in shown[:LINES]}
        for job, (text, _) in lines.items():
            text.object = described(job)
        rest = len(shown) - len(lines)
        self._rest.param.update(object=f"<p>and {rest} more</p>" if rest > 0 else "", visible=rest > 0)
        if [*lines] != [*self._lines]:
            self._lines = lines
            self.panel.objects = [*(row for _, row in lines.values()), self._rest]
        self.panel.visible = bool(lines)

    def _line(self, job: LongJob) -> tuple[pn.pane.HTML, pn.Row]:
        text = pn.pane.HTML(described(job), sizing_mode="stretch_width")
        cancel = pn.widgets.Button(label="Cancel", description=f"Stop {job.title}", width=80)
        cancel.on_click(lambda _: job.cancel())
        return text, pn.Row(text, cancel, sizing_mode="stretch_width", css_classes=["job"])


def described(job: LongJob) -> str:
    """Title, progress and time left of a job as HTML, escaped."""
    title = html.escape(job.title)
    if job.state == "waiting":
        return f"<p>{title}: waits for its turn</p>"
    bar = f'<progress max="{job.total}" value="{job.done}" aria-label="{title}"></progress>' if job.total else ""
    return f"<p>{title}: {job.progress or 'begins'} {bar}</p>"
