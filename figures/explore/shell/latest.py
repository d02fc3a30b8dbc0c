"""Work in a thread of the server of which only the latest request counts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Lock
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
        self._lock = Lock()
        self._number = 0
        self._idle = True
        self._next: Callable[[], None] | None = None

    def ask(self, compute: Callable[[], Result], show: Callable[[Result], Any]) -> None:
        """Call `show(compute())`: `compute` in a thread, `show` in that of the page; not if asked again before."""
        if self._view.explorer.opening:
            self._begin(compute, show)
            return
        with self._lock:
            self._number += 1
            number = self._number
            self._next = lambda: self._run(number, compute, show)
            if self._idle:
                self._idle = False
                _POOL.submit(self._work)

    def _begin(self, compute: Callable[[], Result], show: Callable[[Result], Any]) -> None:
        """Show a result now if it takes a moment only, later if it takes longer."""
        with self._lock:
            self._number += 1
            number = self._number
        future = _POOL.submit(compute)
        wait([future], AT_ONCE)
        if future.done():
            self._view.guarded(lambda: show(future.result()))()
        else:
            future.add_done_callback(lambda result: self._run(number, result.result, show))

    def _work(self) -> None:
        while True:
            with self._lock:
                act, self._next = self._next, None
                if act is None:
                    self._idle = True
                    return
            act()

    def _run(self, number: int, compute: Callable[[], Result], show: Callable[[Result], Any]) -> None:
        try:
            result = compute()
        except Exception as reason:  # noqa: BLE001 - raised again in the thread of the page
            self._end(number, _raise, reason)
        else:
            self._end(number, show, result)

    def _end(self, number: int, act: Callable[[Any], Any], value: Any) -> None:
        guarded = self._view.guarded(act)
        self._view.explorer.push(lambda: guarded(value) if number == self._number else None)


def _raise(reason: Exception) -> None:
    raise reason
