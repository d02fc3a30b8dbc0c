"""The outermost layout of the explorer, which one thread at a time changes and sends."""

from __future__ import annotations

import threading
from typing import Any

import panel as pn


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
