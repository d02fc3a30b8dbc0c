"""What a view is: a body that is built when it is first shown, and what it does when the selection changes."""

from __future__ import annotations

import html
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import panel as pn

from figures.explore.shell.selection import span

if TYPE_CHECKING:
    from drift.runs.run import Run
    from figures.explore.shell.app import Explorer
    from figures.explore.shell.plot import Plot
    from figures.explore.shell.selection import Selection
    from figures.explore.work.job import LongJob

Wanted = Callable[[], bool]
"""Whether the page still waits for something."""

PROBLEMS = (LookupError, ValueError, OSError)
"""Errors that are messages to the person: each becomes one line in the view."""

EVERY = 0.5
"""Seconds between two texts on the progress of a computation."""


class View(ABC):
    """One view of the selection; none reads another one.

    `body` is called when it is first shown, then `update` with all fields, later with those of `follows` that changed,
    once it is shown. Its errors become a line in the view, which then shows nothing else but its pickers.

    Args:
        explorer: Selection, runs, jobs.
    """

    name: ClassVar[str]
    """As in the address."""
    title: ClassVar[str]
    """As in the list of views."""
    follows: ClassVar[frozenset[str]] = frozenset()
    """Fields of the selection, looks (`plane.depth`), and "growth" (a run grew) at whose change it is updated."""
    pickers: ClassVar[int] = 1
    """Parts of the body, the first ones, that stay where the others would be of something else that was selected."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.problem = ""
        self._waiting: set[str] = set()
        self._body: pn.Column | None = None
        self._jobs: list[LongJob] = []
        self._quiet = False

    @cached_property
    def _line(self) -> pn.pane.HTML:
        """The line above the body; parts of a view are made when it is first shown, so that the page opens sooner."""
        return pn.pane.HTML("", css_classes=["line"], visible=False, sizing_mode="stretch_width")

    @cached_property
    def panel(self) -> pn.Column:
        """Line and body; for the shell."""
        return pn.Column(self._line, sizing_mode="stretch_width", css_classes=["view", f"view-{self.name}"])

    @cached_property
    def content(self) -> pn.Column:
        """The body without its pickers; not visible where what is selected cannot be shown."""
        return pn.Column(sizing_mode="stretch_width")

    @cached_property
    def busy(self) -> pn.pane.HTML:
        """A line in the body, which `write` fills; for views that have one."""
        return pn.pane.HTML("", sizing_mode="stretch_width")

    @property
    def selection(self) -> Selection:
        """What is looked at."""
        return self.explorer.selection

    @abstractmethod
    def body(self) -> pn.Column:
        """What is shown, without numbers yet: `update` follows at once."""

    @abstractmethod
    def update(self, changed: set[str]) -> None:
        """Show what is selected now; never compute for long here, start a job."""

    def figures(self) -> list[Any]:
        """What it shows now as named figures (`as_figure.Request`); none: nothing to draw yet."""
        return []

    def say(self, text: str = "") -> None:
        """Show one line above the body, in place of the line before; none if empty."""
        self.problem = " ".join(text.split())
        self._line.param.update(object=f"<p>{html.escape(self.problem)}</p>" if text else "", visible=bool(text))

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Widgets are set to what is selected meanwhile, which is no choice of a person: `pick` does nothing."""
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before

    def pick(self, **changes: Any) -> None:
        """Select what a person chose."""
        if not self._quiet:
            self.selection.change(**changes)

    def on_point(self, plot: Plot, act: Callable[[dict[str, Any]], Any]) -> None:
        """Call a function with the point that is clicked in a figure; its errors become a line in the view."""
        plot.on("click", self.guarded(lambda event: [act(point) for point in event.get("points", ())[:1]]))

    def brushed(self, event: dict[str, Any]) -> None:
        """Select the rounds of a box that was drawn over them."""
        if event["x"] is not None:  # drawing anew ends the box, which is reported as well
            self.selection.change(rounds=span(event["x"]))

    def picks(self, fields: Mapping[str, Any]) -> None:
        """Let widgets choose fields of the selection, by their names."""
        for field, widget in fields.items():
            widget.param.watch(self.guarded(lambda event, field=field: self.pick(**{field: event.new})), "value")

    def picker(self, field: str, label: str, options: Any = (), **look: Any) -> pn.widgets.Select:
        """A list from which a person chooses a field of the selection, or the look of a view (`plane.depth`)."""
        widget = pn.widgets.Select(label=label, options=options or [], **look)
        self.picks({field: widget})
        return widget

    def button(self, label: str, act: Callable[[Any], Any], **look: Any) -> pn.widgets.Button:
        """A button that calls a function when it is pressed."""
        widget = pn.widgets.Button(label=label, **look)
        widget.on_click(self.guarded(act))
        return widget

    def guarded(self, act: Callable[..., Any]) -> Callable[..., Any]:
        """A handler of events whose errors become a line in the view: `button.on_click(self.guarded(self._go))`."""
        return self.guard()(act)

    @contextmanager
    def guard(self, *, hide: bool = False) -> Iterator[None]:
        """Errors become a line in the view, and a mistake of the code is printed; `hide`: `content` is hidden too."""
        try:
            yield
        except Exception as reason:  # noqa: BLE001 - see above
            self.content.visible = self.content.visible and not hide
            if isinstance(reason, PROBLEMS) and not isinstance(reason, KeyError | IndexError):
                return self.say(str(reason))
            traceback.print_exception(reason)
            text = f"a mistake in fedscape, {type(reason).__name__}: {reason}"
            return self.say(f"{text}. Its traceback is where fedscape was started.")

    def ask(
        self,
        function: Callable[[Run, Any], Any],
        run: Run,
        item: Any,
        show: Callable[[Any], Any],
        *,
        wanted: Wanted = lambda: True,
        ended: Callable[[LongJob], Any] | None = None,
        title: str = "",
        priority: int = 0,
    ) -> LongJob:
        """Compute `function(run, item)` away from the page, which shows the result, or says its error, if `wanted`."""
        push, lost = self.explorer.push, ended or self.say_error
        how: dict[str, Any] = {"view": self, "wanted": wanted}
        job = self.explorer.jobs.quick(
            function,
            run,
            [item],
            title=title,
            priority=priority,
            on_result=lambda _, result: push(show, result, **how),
            on_end=lambda job: None if job.state == "done" else push(lost, job, **how),
        )
        self._jobs = [*(other for other in self._jobs if not other.ended), job]
        return job

    def compute(
        self,
        begin: Callable[..., LongJob],
        show: Callable[[Any], Any],
        *,
        wanted: Wanted,
        ended: Callable[[LongJob], Any],
        say: Callable[[str], Any] | None = None,
    ) -> LongJob:
        """As `ask`, for a long computation: `begin` takes `on_progress` and `on_end`; `say` takes its progress."""
        push, last = self.explorer.push, 0.0

        def on_progress(job: LongJob) -> None:
            nonlocal last
            if say is not None and (now := time.monotonic()) - last > EVERY:
                last = now
                push(say, job.progress, view=self, wanted=lambda: wanted() and not job.ended)

        def on_end(job: LongJob) -> None:
            act, value = (show, job.result) if job.state == "done" else (ended, job)
            push(act, value, view=self, wanted=wanted)

        return begin(on_progress=on_progress, on_end=on_end)

    def say_error(self, job: LongJob) -> None:
        """Say why a job failed in place of the status; nothing where it was cancelled."""
        if job.error is not None:
            self.busy.object = ""
            self.say(str(job.error))

    def fail(self, job: LongJob) -> None:
        """Say why the job failed that computes all that is shown, and hide what was shown before."""
        self.say_error(job)
        self.content.visible = job.error is None

    def write(self, text: str) -> None:
        """Show one line as the status; none if empty."""
        self.busy.object = f"<p>{html.escape(text)}</p>" if text else ""

    def close(self) -> None:
        """End the work that only this page waits for (`_jobs`), once it is closed; for the shell."""
        for job in self._jobs:
            job.cancel()
        self._jobs = []

    def show(self, changed: set[str], *, visible: bool) -> None:
        """Update it with what changed, now if it is visible, else when it is next; for the shell."""
        self._waiting |= changed & self.follows
        if not visible or not (self._waiting or self._body is None):
            return
        waiting, self._waiting = self._waiting, set()
        self.say()
        self.content.visible = True
        with self.guard(hide=True):
            if self._body is None:
                objects, waiting = self.body().objects, set(self.follows)
                self.content.objects = objects[self.pickers :]
                self._body = pn.Column(*objects[: self.pickers], self.content, sizing_mode="stretch_width")
            self.update(waiting)
        if self._body is not None:
            self._body.visible = bool(self.explorer.runs.names)  # without a run there is nothing to pick
            if len(self.panel) == 1:
                self.panel.append(self._body)
