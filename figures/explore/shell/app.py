"""The explorer: one selection and the views of it, in one layout for a page or a notebook cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import panel as pn

from drift.runs.growing_run import GrowingRun
from drift.runs.run import Run
from figures.explore.shell import style
from figures.explore.shell.frame import Frame
from figures.explore.shell.header import PageHeader
from figures.explore.shell.page import Page
from figures.explore.shell.root import Root, scheduler
from figures.explore.shell.selection import Selection
from figures.explore.shell.view import View, Wanted
from figures.explore.shell.view_classes import CLASSES
from figures.explore.work.jobs import Jobs
from figures.explore.work.open_runs import Changes, OpenRuns
from figures.explore.work.workspace import Workspace


class Explorer:
    """Selection, runs, jobs and views of one page.

    Args:
        workspace: What all pages share.
        query: Query of an address: the selection to begin with.
        address: Whether the page is the explorer's own, with an address to write; not in a notebook.
    """

    def __init__(self, workspace: Workspace, query: str = "", *, address: bool = False) -> None:
        if pn.config.design is None:
            pn.config.design = style.Explore
        self.workspace = workspace
        self.selection = Selection()
        self._push, self._closed = scheduler(lambda: self._closed), False
        self._document: Any = pn.state.curdoc
        self._displayed = address
        self._ready = not address
        self.opening = True
        self._early: list[Callable[[], Any]] = []
        self._placed = 0
        problems = self.selection.read(query)
        self._begin()
        self.views: dict[str, View] = {name: view(self) for name, view in CLASSES.items()}
        self._frames: dict[str, Frame] = {}
        self._slots = [pn.Column(sizing_mode="stretch_width", css_classes=["slot"]) for _ in range(2)]
        self.header = PageHeader(self)
        if address:
            self.header.activity.panel.css_classes = ["activity", "floating"]
        self.page = Page(self._go, self.header.key, self._flush, address=address)
        self._root = Root(
            self.page,
            self.header.panel,
            pn.Row(*self._slots, css_classes=["slots"], sizing_mode="stretch_width"),
            sizing_mode="stretch_width",
            css_classes=["explore"],
        )
        self.selection.follow(self._selected)
        self._update(set(self.selection.fields()))
        self.page.write(self.selection.query, "", self.shown(), self._placed)
        self._say(problems)
        self.opening = False
        self._unfollow = workspace.follow(
            lambda changes: self.push(self._grown, changes), lambda: self.push(self.header.activity.update)
        )

    @property
    def runs(self) -> OpenRuns:
        """The open runs."""
        return self.workspace.runs

    @property
    def jobs(self) -> Jobs:
        """Work away from the page."""
        return self.workspace.jobs

    def run(self) -> Run:
        """The run that is looked at in detail, with its models and data.

        Raises:
            LookupError: If none is selected, or it cannot be read.
        """
        return self.runs.run(self._name())

    def recorded(self) -> GrowingRun:
        """The run that is looked at in detail, without models: what it recorded.

        Raises:
            LookupError: If none is selected, or there is none of that name.
        """
        return self.runs.recorded(self._name())

    def round(self) -> int:
        """Number of the round that is looked at: the selected one, or the last.

        Raises:
            LookupError: If no run is selected, or it has no such round.
        """
        rounds = self.recorded().rounds()
        if not len(rounds):
            raise LookupError(f"run {self.selection.run} has no complete round yet; it appears here once it has.")
        number = rounds[-1] if self.selection.round is None else self.selection.round
        if number not in rounds:
            raise LookupError(f"run {self.selection.run} has no round {number}; it has {rounds[0]} to {rounds[-1]}.")
        return int(number)

    def show(self, **fields: Any) -> Explorer:
        """Change what is selected, as a person would; returns the explorer, so that it stands last in a cell.

        Args:
            **fields: Of the selection: view, round, clients, ...

        Raises:
            ValueError: If there is no such field, or it does not accept the value.
        """
        with self._root.lock:
            self.selection.change(**fields)
        return self

    def push(
        self, act: Callable[..., Any], *values: Any, view: View | None = None, wanted: Wanted = lambda: True
    ) -> None:
        """Call a function in the thread of the page, before the browser asks for the page or once it has drawn it.

        From any thread.

        Args:
            values: Of the function.
            view: Its line shows what goes wrong.
            wanted: Whether the call still is, when its turn has come.
        """

        def pushed() -> None:
            with self._root.lock, nullcontext() if view is None else view.guard():
                if not (self._ready or self._unasked()):
                    self._early.append(pushed)
                elif wanted():
                    act(*values)

        self._push(pushed)

    def readable(self, empty: str) -> list[Run]:
        """The selected runs that can be read.

        Raises:
            LookupError: If there is none; it says `empty`.
        """
        runs = [self.runs.run(name) for name in self.selection.runs if not self.runs.problem(name)]
        if not runs:
            raise LookupError(empty)
        return runs

    def shown(self) -> list[str]:
        """Names of the views on the page, one or two."""
        first, second = self.selection.view, self.selection.second
        first = first if first in self.views else next(iter(self.views))
        return [first, second] if second in self.views and second != first else [first]

    def close(self) -> None:
        """End what works and watches for growth on behalf of this page; what is pushed later is dropped."""
        self._closed = True
        self._unfollow()
        for view in self.views.values():
            view.close()

    def __panel__(self) -> pn.viewable.Viewable:
        return self._root

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        with self._root.lock:
            self._displayed, self._ready = True, False
            return self._root._repr_mimebundle_(include, exclude)

    def _unasked(self) -> bool:
        """Whether no browser has asked for the content of the page yet, which then comes with what changes now."""
        context = self._document.session_context if self._displayed and self._document is not None else None
        session = None if context is None else context.session
        return session is not None and session.connection_count == 0

    def _name(self) -> str:
        if self.selection.run:
            return self.selection.run
        if self.runs.names:
            raise LookupError("no run is selected; select one above.")
        raise LookupError(self.runs.none_yet)

    def _begin(self) -> None:
        """Select runs to begin with, where the address names none."""
        if not self.selection.runs:
            self.selection.change(runs=self.runs.suggested or self.runs.names[:1])

    def _selected(self, changed: set[str]) -> None:
        """Show a change of the selection everywhere."""
        self._update(changed)
        self.page.write(self.selection.query, ",".join(sorted(changed)), self.shown(), self._placed)
        if "runs" in changed:
            self._say()

    def _grown(self, changes: Changes) -> None:
        """Show that runs grew, appeared or vanished."""
        self._begin()
        self._say()
        self._update({"growth"})

    def _say(self, problems: Sequence[str] = ()) -> None:
        """Say what is wrong with the address and the selected runs, one line each."""
        names = self.runs.names
        absent = [f"no run {name} here; select another one." for name in self.selection.runs if name not in names]
        self.header.say(*problems, *absent, *(self.runs.problem(name) for name in self.selection.runs if name in names))

    def _update(self, changed: set[str]) -> None:
        shown = self.shown()
        self.header.update(changed)
        for name, view in self.views.items():
            view.show(changed, visible=name in shown)
        if changed & {"view", "second"}:
            self._arrange(shown)

    def _arrange(self, shown: list[str]) -> None:
        """Put views into their places; what is pushed waits until the browser has drawn them."""
        for slot, name in zip(self._slots, [*shown, ""], strict=False):
            if name and name not in self._frames:
                self._frames[name] = Frame(self.views[name])
            wanted = [self._frames[name].panel] if name else []
            if slot.objects != wanted:
                slot.objects = wanted
                self._ready = not self._displayed
                self._placed += 1
            slot.visible = bool(name)
        for name, frame in self._frames.items():
            frame.arrange(second=len(shown) > 1 and name in shown)

    def _flush(self, placed: int) -> None:
        """The browser has drawn views: what was pushed before follows, if they still are those on the page."""
        if placed != self._placed:
            return
        self._ready, early, self._early = True, self._early, []
        for act in early:
            act()

    def _go(self, query: str) -> None:
        """The selection that the back button leads to."""
        self._say(self.selection.read(query))
