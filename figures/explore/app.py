"""The explorer: one selection and the views of it, in one layout for a page or a notebook cell."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from typing import Any

import panel as pn

from drift.runs.run import Run
from figures.explore import style
from figures.explore.header import Header
from figures.explore.page import Page
from figures.explore.selection import Selection
from figures.explore.view import View
from figures.explore.workspace import Workspace

VIEWS = {
    "runs": "Runs",
    "round": "Round",
    "plane": "Plane",
    "weights": "Weights",
    "samples": "Samples",
    "path": "Path",
    "drift": "Drift",
    "diagnosis": "Diagnosis",
}
"""Names and titles of the views, in their order."""


class Explorer:
    """Selection, runs, jobs and views of one page.

    Args:
        workspace: What all pages share.
        query: Query of an address: the selection to begin with.
        address: Whether the page is the explorer's own, with an address to write; not in a notebook.
    """

    def __init__(self, workspace: Workspace, query: str = "", *, address: bool = False) -> None:
        self.workspace = workspace
        self.selection = Selection()
        self._problems = self.selection.read(query)
        self._push = _scheduler()
        if not self.selection.runs and workspace.runs.names:
            self.selection.change(runs=workspace.runs.names[:1])
        self.views = {name: _view(name, self) for name in VIEWS}
        self.header = Header(self)
        self.page = Page(self._go, self._key, address=address, query=self.selection.query)
        self._slots = [pn.Column(sizing_mode="stretch_width", css_classes=["slot"]) for _ in range(2)]
        self._unfollow = workspace.follow(lambda changes: self.push(lambda: self._grown(changes)))
        self.selection.follow(self._selected)
        self._place()
        self._selected(set(self.selection.fields()))

    @property
    def runs(self) -> Any:
        """The open runs (`open_runs.OpenRuns`)."""
        return self.workspace.runs

    @property
    def jobs(self) -> Any:
        """The worker processes (`jobs.Jobs`)."""
        return self.workspace.jobs

    def run(self) -> Run:
        """The run that is looked at in detail.

        Raises:
            LookupError: If none is selected, or it cannot be read.
        """
        if not self.selection.run:
            raise LookupError("no run is selected; select one in Runs, or above.")
        opened: Run = self.runs.run(self.selection.run)
        return opened

    def round(self) -> int:
        """Number of the round that is looked at: the selected one, or the last.

        Raises:
            LookupError: If no run is selected, or it has no such round.
        """
        rounds = self.run().rounds()
        if not rounds:
            raise LookupError(f"run {self.selection.run} has no complete round yet; it appears here once it has.")
        number = rounds[-1] if self.selection.round is None else int(self.selection.round)
        if number not in rounds:
            raise LookupError(f"run {self.selection.run} has no round {number}; it has {rounds[0]} to {rounds[-1]}.")
        return number

    def push(self, act: Callable[[], Any]) -> None:
        """Call a function in the thread of the page; may be called from any thread."""
        self._push(act)

    def close(self) -> None:
        """End what watches for growth on behalf of this page."""
        self._unfollow()

    def __panel__(self) -> pn.viewable.Viewable:
        if not hasattr(self, "_root"):
            self._root = pn.Column(
                self.page,
                self.header.panel,
                pn.FlexBox(*self._slots, css_classes=["slots"], sizing_mode="stretch_width"),
                sizing_mode="stretch_width",
                css_classes=["explore"],
                design=style.Explore,
            )
        return self._root

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return self.__panel__()._repr_mimebundle_(include, exclude)

    def shown(self) -> list[str]:
        """Names of the views on the page, one or two."""
        names = [self.selection.view if self.selection.view in self.views else "runs"]
        second = self.selection.second
        return [*names, second] if second in self.views and second not in names else names

    def _selected(self, changed: set[str]) -> None:
        """Show a change of the selection everywhere, in one message to the page."""
        with pn.io.hold():
            if changed & {"view", "second"}:
                self._place()
            self.page.param.update(query=self.selection.query, step=",".join(sorted(changed)))
            self.header.update(changed)
            visible = self.shown()
            for name, view in self.views.items():
                view.show(changed, visible=name in visible)

    def _grown(self, changes: Any) -> None:
        """Show that runs grew, appeared or vanished."""
        changed = {"growth"} if {*changes.added, *changes.grown, *changes.gone, *changes.problems} else set()
        if not self.selection.runs and changes.added:
            self.selection.change(runs=sorted(changes.added)[:1])
        with pn.io.hold():
            self.header.update(changed)
            for name, view in self.views.items():
                view.show(changed, visible=name in self.shown())

    def _place(self) -> None:
        """Put the shown views into their places."""
        names = self.shown()
        for slot, name in zip(self._slots, [*names, ""], strict=False):
            wanted = [self.views[name].panel()] if name else []
            if list(slot) != wanted:
                slot.objects = wanted
            slot.visible = bool(name)

    def _go(self, query: str) -> None:
        """The selection that the back button leads to."""
        self._problems = self.selection.read(query)

    def _key(self, key: str) -> None:
        self.header.key(key)


def _view(name: str, explorer: Explorer) -> View:
    """The view in the file of that name; one that says so where there is none yet."""
    try:
        module = importlib.import_module(f"figures.explore.views.{name}")
    except ModuleNotFoundError:
        return type("Absent", (Absent,), {"name": name, "title": VIEWS[name]})(explorer)
    found = [
        one for one in vars(module).values() if isinstance(one, type) and issubclass(one, View) and "name" in vars(one)
    ]
    return next(one for one in found if one.name == name)(explorer)


class Absent(View):
    """Stands in for a view that is not there yet."""

    def body(self) -> pn.viewable.Viewable:
        return pn.pane.HTML(f"<p>{self.title}: not here yet.</p>")

    def update(self, changed: set[str]) -> None:
        pass


def _scheduler() -> Callable[[Callable[[], Any]], None]:
    """How a function is called in the thread of this page: by its document, by the notebook's loop, or at once."""
    document = pn.state.curdoc
    if document is not None and document.session_context:
        return document.add_next_tick_callback
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return lambda act: act()
    return lambda act: loop.call_soon_threadsafe(act) and None
