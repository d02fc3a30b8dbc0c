"""Calls that nobody waits for any more: a thread marks its call, and looks between two blocks whether it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Block = TypeVar("Block")

_NOW = threading.local()
_STOPPED: set[int] = set()


class StoppedCall(RuntimeError):
    """A call that was stopped; its answer is thrown away."""


@contextmanager
def call(number: int) -> Iterator[None]:
    """What this thread does inside belongs to the call of that number."""
    _NOW.number = number
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


def until_stopped(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks, one after the other, until `require_wanted` ends them."""
    for block in blocks:
        require_wanted()
        yield block
