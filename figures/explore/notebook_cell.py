"""The widget of a notebook cell: a frame with the stage, its messages, its address, and what a saved notebook shows."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from figures.explore.session import Session
from figures.explore.work.workspace import Workspace
from figures.page.report import notebook_page

AGAIN = "Run this cell to open the explorer."
SAVED = f"""<style>
.jp-OutputArea:has(.fedscape-live) .jp-OutputArea-child:is(:has(.fedscape-saved), :has(.fedscape-saved) + *) {{
  display: none;
}}
.jp-OutputArea:has(.fedscape-saved) .jupyter-widgets.jp-OutputArea-output:not(:has(*)) {{ display: none; }}
</style><p class="fedscape-saved">{AGAIN}</p>"""
"""Line of a saved notebook. While the widget lives, JupyterLab hides line and picture; without it, the error line."""


class Explorer(anywidget.AnyWidget):
    """The stage in a cell.

    Args:
        workspace: Its runs and jobs.
    """

    _esm = Path(__file__).with_name("widget.js")
    page = traitlets.Unicode().tag(sync=True)
    address = traitlets.Unicode().tag(sync=True)

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(page=notebook_page())
        self.workspace = workspace
        self._deliver, self._lock = _delivery(), threading.Lock()
        self._picture: Any = None
        self._session = Session(workspace, self._tell)
        self.on_msg(self._receive)

    def show(self, **fields: Any):
        self.address = "#" + "&".join(f"{k}={v}" for k, v in fields.items()) if fields else ""
        return self

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display({"text/html": SAVED, "text/plain": AGAIN}, raw=True)
        self._picture = display({"text/plain": ""}, raw=True, display_id=True)
        display(self._repr_mimebundle_()[0], raw=True)

    def close(self) -> None:
        self._session.close()
        super().close()

    def _tell(self, message: dict[str, Any]) -> None:
        self._deliver(self._send_now, message)

    def _send_now(self, message: dict[str, Any]) -> None:
        with self._lock:
            self.send(message)

    def _receive(self, _: Any, message: Any, buffers: Any) -> None:
        """Take a message, in whichever thread it arrives."""
        if isinstance(message, dict) and "picture" in message:
            if self._picture is not None:
                self._picture.update({"image/png": message["picture"], "text/plain": ""}, raw=True)
        else:
            self._session.receive(message)


def _delivery() -> Callable[..., None]:
    """How a message is sent from any thread: at once; in marimo, whose threads have no page, by the loop of the cells."""
    marimo = sys.modules.get("marimo")
    if marimo is None or not marimo.running_in_notebook():
        return lambda send, message: send(message)
    loop = asyncio.get_running_loop()
    return loop.call_soon_threadsafe
