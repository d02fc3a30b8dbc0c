"""Calls that nobody waits for any more: a thread marks its call, and looks between two blocks whether it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drift.runs.run import Run


_NOW = threading.local()
_STOPPED: set[int] = set()


class StoppedCall(RuntimeError):
    """A call that was stopped; its answer is thrown away."""


@contextmanager
def call(number: int, steps: Callable[[int, int, int], None]) -> Iterator[None]:
    """What this thread does inside belongs to the call of that number, which reports its steps."""
    _NOW.number, _NOW.steps = number, steps
    try:
        yield
    finally:
        _NOW.number = None
        _STOPPED.discard(number)


def stop(number: int) -> None:
    """Let a call end soon; one that has ended already is as it was."""
    _STOPPED.add(number)


def require_wanted() -> None:
    """End a call that nobody waits for.

    Raises:
        StoppedCall: If the call of this thread was stopped.
    """
    if getattr(_NOW, "number", None) in _STOPPED:
        raise StoppedCall("nobody waits for it any more.")


def step(done: int, total: int) -> None:
    """Report that the call of this thread, if there is one, has done so many steps; a progress of analyses.

    Raises:
        StoppedCall: If it was stopped.
    """
    require_wanted()
    if (number := getattr(_NOW, "number", None)) is not None:
        _NOW.steps(number, done, total)


def stoppable(run: Run) -> Run:
    """The same run, whose analyses end at a step when the call of this thread is stopped; its data are read once."""
    watched = run.with_progress(step)
    vars(watched).update({name: value for name, value in vars(run).items() if name not in ("folder", "context")})
    return watched
