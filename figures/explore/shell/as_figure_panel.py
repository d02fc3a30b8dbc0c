"""The drawer "as figure" of a view: command line and Python lines of what it shows, and its files to download."""

from __future__ import annotations

import base64
import html
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import panel as pn

from figures.explore.shell.as_figure import Request, draw
from figures.explore.shell.view import PROBLEMS, View

NOTHING = "Nothing to draw yet: select a run, and what the view asks for."

FORMS = ("pdf", "png", "svg", "csv")
"""Files that can be downloaded."""


class AsFigure:
    """What a view shows as named figures; follows the selection until it is closed.

    Args:
        view: Its `figures` are shown.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self.panel = pn.Column(sizing_mode="stretch_width", css_classes=["as-figures"])
        self._requests: list[Request] | None = None
        self._sheets: list[Sheet] = []
        self._unfollow = view.selection.follow(self._selected)
        self._selected(set())

    def close(self) -> None:
        """Forget the files and follow no longer."""
        self._unfollow()
        self._forget()

    def _selected(self, changed: set[str]) -> None:
        try:
            requests, problem = self.view.figures() if self.view.content.visible else [], self.view.problem or NOTHING
        except PROBLEMS as reason:
            requests, problem = [], " ".join(str(reason).split())
        if requests and requests == self._requests:
            return
        self._forget()
        self._requests = requests
        self._sheets = [Sheet(self.view, request) for request in requests]
        shown: list[pn.viewable.Viewable] = [sheet.panel for sheet in self._sheets]
        self.panel.objects = shown or [pn.pane.HTML(f"<p>{html.escape(problem)}</p>")]

    def _forget(self) -> None:
        for sheet in self._sheets:
            sheet.close()
        self._sheets = []


class Sheet:
    """One named figure: its lines, and its files once they are drawn.

    Args:
        view: Its explorer has the runs and draws in a job.
        request: The figure.
    """

    def __init__(self, view: View, request: Request) -> None:
        self._explorer, self.request = view.explorer, request
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._job: Any = None
        self._button = pn.widgets.Button(label="draw it", color="primary", width=100)
        self._button.on_click(lambda _: self._draw())
        self._line = pn.pane.HTML("", css_classes=["line"])
        self._files = pn.Row(css_classes=["wrap"])
        self._picture = pn.pane.HTML("", sizing_mode="stretch_width")
        title = request.title or request.figure
        self.panel = pn.Column(
            pn.pane.HTML(f"<h3>{html.escape(title)}</h3>"),
            lines("command line", request.command()),
            lines("Python", request.python()),
            pn.Row(self._button, self._files, css_classes=["wrap"]),
            self._line,
            self._picture,
            sizing_mode="stretch_width",
        )

    def close(self) -> None:
        """End its job and delete its files."""
        if self._job is not None:
            self._job.cancel()
        if self._folder is not None:
            self._folder.cleanup()

    def _draw(self) -> None:
        self._button.disabled = True
        self._say("drawing ...")
        self._folder = self._folder or tempfile.TemporaryDirectory(prefix="fedscape-figure-")
        title = f"{self.request.figure}: drawing"
        push, plain = self._explorer.push, replace(self.request, opened=())
        ended = lambda job: push(lambda: self._finished(job))  # noqa: E731
        runs, folder = self.request.opened, Path(self._folder.name)
        self._job = self._explorer.jobs.long(draw, runs, plain, folder, title=title, on_end=ended)

    def _finished(self, job: Any) -> None:
        """Show the picture and the files, or why there are none."""
        self._button.disabled = False
        if job.state != "done":
            self._say("cancelled." if job.error is None else str(job.error))
            return
        self._say("")
        paths = {path.suffix[1:]: path for path in job.result}
        self._files.objects = [
            pn.widgets.FileDownload(
                file=str(paths[form]), filename=paths[form].name, label=form.upper(), embed=False, width=80, height=32
            )
            for form in FORMS
        ]
        code = base64.b64encode(paths["png"].read_bytes()).decode()
        alt = html.escape(self.request.title or self.request.figure)
        style = "width: 100%; max-width: 760px; background: white"
        self._picture.object = f'<img src="data:image/png;base64,{code}" alt="{alt}" style="{style}">'

    def _say(self, text: str) -> None:
        self._line.object = f"<p>{html.escape(' '.join(text.split()))}</p>" if text else ""


def lines(label: str, text: str) -> pn.viewable.Viewable:
    """Lines to copy: one click selects all of them."""
    style = "user-select: all; overflow-x: auto; margin: 2px 0; padding: 6px 8px; border: 1px solid #8888"
    return pn.pane.HTML(
        f'<small>{html.escape(label)}</small><pre tabindex="0" aria-label="{html.escape(label)}" style="{style}">'
        f"{html.escape(text.rstrip())}</pre>",
        sizing_mode="stretch_width",
    )
