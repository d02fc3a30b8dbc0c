"""Work in a thread of the server of which only the latest request counts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from figures.explore.shell.view import View

Result = TypeVar("Result")

_POOL = ThreadPoolExecutor(2, "fedscape-record")

AT_ONCE = 0.05
"""Seconds that the answer to a browser waits for a result; what is there a little later comes with the page as well."""


class Latest:
    """Runs functions of a view away from the page's thread; of several requests only the last one is shown.

    For reading the record of runs, which takes a fraction of a second; long computations are jobs.

    Args:
        view: Its line shows what goes wrong.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._future: Future[Any] | None = None

    def ask(self, compute: Callable[[], Result], show: Callable[[Result], Any]) -> None:
        """Call `show(compute())`: `compute` in a thread, `show` in that of the page; not if asked again before.

        Of a page that opens, what takes a moment only is shown at once.
        """
        if self._future is not None:
            self._future.cancel()
        self._future = future = _POOL.submit(compute)

        def act() -> None:
            with self._view.guard(hide=True):
                show(future.result())

        if self._view.explorer.opening and wait([future], AT_ONCE).done:
            act()
            return
        how: dict[str, Any] = {"view": self._view, "wanted": lambda: future is self._future}
        push = self._view.explorer.push
        future.add_done_callback(lambda done: None if done.cancelled() else push(act, **how))
