"""The outermost layout of the explorer, which one thread at a time changes and sends, and how to reach that thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import panel as pn
from tornado.ioloop import IOLoop


class Root(pn.Column):
    """A column with a lock that whoever changes what is in it takes.

    JupyterLab hands what a person does to a thread of its own in the kernel (a subshell), while results are pushed in
    the kernel's main thread. Panel sends each change in several parts, which the page cannot read if parts of another
    change are between them.
    """

    def __init__(self, *objects: Any, **options: Any) -> None:
        super().__init__(*objects, **options)
        self.lock = threading.RLock()

    def _on_msg(self, ref: str, manager: Any, msg: Any) -> None:
        """A message of the page, in whichever thread it arrives."""
        with self.lock:
            super()._on_msg(ref, manager, msg)


def scheduler(closed: Callable[[], bool]) -> Callable[[Callable[[], Any]], Any]:
    """How a function is called in the thread of this page: by its document, by the notebook's loop, or at once.

    A document is only asked in its own thread: asking it makes it Bokeh's current document, in all threads.

    Args:
        closed: Whether the page is closed; then nothing is called.
    """
    document = pn.state.curdoc
    if document is not None and document.session_context:
        page = IOLoop.current()
        return lambda act: page.add_callback(lambda: None if closed() else document.add_next_tick_callback(act))
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return lambda act: act()
    return loop.call_soon_threadsafe
