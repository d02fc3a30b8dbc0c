"""The widget of a notebook cell: sessions of its pages, what they select, and what a saved notebook shows."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from figures.explore.address import address_of, selection_of
from figures.explore.live_page import live_page
from figures.explore.session import Session
from figures.explore.work.workspace import Workspace

PAGES = 4
"""Pages of one widget that are answered, those opened last: copies of a cell, browsers, reloaded pages."""

AGAIN = "The explorer opens here when this cell is run."
SAVED = f"""<p class="fedscape-saved">{AGAIN}</p><style>
.jp-OutputArea:has(.fedscape-live) .jp-OutputArea-child:is(:has(.fedscape-saved), :has(.fedscape-saved) + *),
.jp-OutputArea:has(.fedscape-saved) .jupyter-widgets:not(:has(*)) {{ display: none; }}
</style>"""
"""What a saved notebook says above its picture. JupyterLab hides both where the widget lives, and its own line of an
error where there is none."""


class Explorer(anywidget.AnyWidget):
    """The stage in a cell.

    Args:
        workspace: Its runs and jobs.
    """

    _esm = Path(__file__).with_name("widget.js")
    page = traitlets.Unicode().tag(sync=True)
    address = traitlets.Unicode().tag(sync=True)

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(page=live_page())
        self.workspace = workspace
        self._sessions: dict[str, Session] = {}
        self._post, self._lock = _post(), threading.RLock()
        self._picture: Any = None
        self.on_msg(self._receive)

    @property
    def selection(self) -> dict[str, Any]:
        """What is selected: round, runs, look, view, ...; fields that are as at the beginning are left out."""
        return selection_of(self.address)

    def show(self, **fields: Any) -> Explorer:
        """Change what is selected, as a reader would; returns the explorer, so that it can stand last in a cell.

        Args:
            **fields: round, runs (at most four), look (the run that the reasons speak of), view (map, relief,
                difference, path), metric (loss, error, "class 3"), point (u and v, distances on the plane), client,
                weights (a number by client, of the clients of `look` in `round`) with gamma, and the others of
                `figures.explore.address`. None takes a field back.

        Raises:
            ValueError: If there is no such field, or it does not accept the value.
        """
        self.address = address_of(self.address, fields, self.workspace.runs)
        return self

    def close(self) -> None:
        """End what works for the cell."""
        for session in self._sessions.values():
            session.close()
        self.workspace.close()
        super().close()

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display({"text/html": SAVED, "text/plain": AGAIN}, raw=True)
        self._picture = display({"text/plain": ""}, raw=True, display_id=True)
        display((self._repr_mimebundle_() or ({},))[0], raw=True)

    def _receive(self, _: Any, content: Any, buffers: Any) -> None:
        """Take a message of a page, in whichever thread it comes: JupyterLab has one of its own for them."""
        if "picture" in content:
            if self._picture is not None:
                self._picture.update({"image/png": content["picture"], "text/plain": ""}, raw=True)
        elif "begin" in content:
            self._begin(content["page"])
        elif session := self._sessions.get(content["page"]):
            self._tell(content["page"], {"heard": True})
            session.receive(content["message"])

    def _begin(self, page: str) -> None:
        with self._lock:
            self._sessions[page] = Session(self.workspace, lambda message: self._tell(page, {"message": message}))
            ended = [self._sessions.pop(name) for name in [*self._sessions][:-PAGES]]
        for session in ended:
            session.close()
        self._tell(page, {"began": True})

    def _tell(self, page: str, content: Mapping[str, Any]) -> None:
        """Send something to a page, from any thread."""
        self._post(self._send_message, {"page": page, **content})

    def _send_message(self, content: Mapping[str, Any]) -> None:
        with self._lock:
            self.send(content)


def _post() -> Callable[..., Any]:
    """How a function that sends is called: at once, or in marimo, where only the thread of the cells can, in that."""
    marimo = sys.modules.get("marimo")
    if marimo is None or not marimo.running_in_notebook():
        return lambda send, content: send(content)
    return asyncio.get_running_loop().call_soon_threadsafe
