"""A computation that a person starts: what it costs, its progress, and its result, also one that is stored."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import panel as pn
import xarray as xr

from drift.runs import cache
from drift.runs.run import Run
from figures.explore.shell import html_table
from figures.explore.shell.latest import Latest
from figures.explore.shell.view import View
from figures.explore.work.job import LongJob

Analysis = Callable[..., xr.Dataset]
Show = Callable[[xr.Dataset | None], Any]


class OnDemand:
    """A button that computes an analysis of a run as a job and stores it where command line and notebook find it.

    Args:
        view: The view that it is part of.
        analysis: The analysis.
        title: What it is, in a few words.
        about: What it computes and why, in a sentence.
        show: Called with the result, or with None while there is none.
    """

    def __init__(self, view: View, analysis: Analysis, title: str, about: str, show: Show) -> None:
        self._view, self._analysis, self._title, self._show = view, analysis, title, show
        self._latest = Latest(view)
        self._key: object = None
        self._run: Run | None = None
        self._arguments: dict[str, Any] = {}
        self._job: LongJob | None = None
        self.button = view.button(f"Compute {title}", lambda _: self._pressed(), color="primary", disabled=True)
        self.text = html_table.pane("state")
        self.text.styles = {"flex": "1 1 260px", "min-width": "260px"}
        self._about = about
        self.panel = pn.Row(self.button, self.text, css_classes=["pickers", f"demand-{analysis.__name__}"])

    def offer(self, run: Run, **arguments: Any) -> None:
        """Show the stored result of these arguments; if there is none, offer to compute it and say what it costs."""
        key = (run.folder, run.head, cache.arguments_text(run, self._analysis, arguments))
        if key == self._key:
            return
        self._key, self._run, self._arguments, self._job = key, run, arguments, None
        self.button.param.update(label=f"Compute {self._title}", disabled=False, visible=True)
        self._say(self._about)
        self._show(None)
        self._latest.ask(lambda: (key, cache.stored(run, self._analysis, arguments)), self._stored)

    def withdraw(self, reason: str) -> None:
        """Offer nothing, and say why."""
        self._key, self._run, self._job = None, None, None
        self.button.disabled = True
        self._say(reason)
        self._show(None)

    def _stored(self, stored: tuple[object, xr.Dataset | None]) -> None:
        key, result = stored
        if key != self._key or self._run is None:
            return
        if result is not None:
            self._done(result)
            return
        about, wanted = (self._analysis, self._arguments), lambda: key == self._key
        self._view.ask(cost_text, self._run, about, self._costs, wanted=wanted, ended=lambda _: None)

    def _costs(self, text: str) -> None:
        if self._job is None and self.button.visible:
            self._say(f"{self._about} {text}")

    def _pressed(self) -> None:
        if self._job is not None and not self._job.ended:
            self._job.cancel()
            return
        if self._run is None:
            return
        key, title = self._key, f"{self._title} of {self._run.name}"
        self.button.label = "Cancel"
        self._say("starting ...")
        begin = partial(self._view.explorer.jobs.cached, self._run, self._analysis, title=title, **self._arguments)
        wanted = lambda: key == self._key  # noqa: E731
        say = lambda text: self._say(f"steps: {text}")  # noqa: E731
        self._job = self._view.compute(begin, self._done, wanted=wanted, ended=self._ended, say=say)

    def _ended(self, job: LongJob) -> None:
        self.button.label = f"Compute {self._title}"
        self._say(f"Cancelled. {self._about}" if job.error is None else f"It failed: {job.error}")

    def _done(self, result: xr.Dataset) -> None:
        self.button.visible = False
        self._say("")
        self._show(result)

    def _say(self, text: str) -> None:
        self.text.object = html_table.lines([text] if text else [])


def cost_text(run: Run, item: tuple[Analysis, dict[str, Any]]) -> str:
    """The estimated effort of an analysis as a sentence; empty without an estimate. For `Jobs.quick`."""
    analysis, arguments = item
    estimate = getattr(sys.modules[analysis.__module__], f"{analysis.__name__}_effort", None)
    return "" if estimate is None else f"It takes {estimate(run, **arguments)}."
