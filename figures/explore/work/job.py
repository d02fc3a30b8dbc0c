"""A piece of work of the page: how far it is, how it ended, and how it is cancelled."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

OnJob = Callable[["LongJob"], None]
State = Literal["waiting", "running", "done", "failed", "cancelled"]


_NUMBERS = count(1)


@dataclass(eq=False)
class LongJob:
    """A piece of work.

    Args:
        title: What it is, for people.
        total, done: Steps in all and done.
        error: Why it failed.
        result: Its result.
        number: Of this job alone.
    """

    title: str
    total: int = 0
    done: int = 0
    state: State = "waiting"
    error: Exception | None = None
    result: Any = None
    number: int = field(default_factory=lambda: next(_NUMBERS))
    _begun: float = field(default_factory=time.monotonic)
    _first: int = 0
    _stop: OnJob = field(default=lambda job: None, repr=False)
    _on_end: OnJob = field(default=lambda job: None, repr=False)
    _on_progress: OnJob = field(default=lambda job: None, repr=False)

    @property
    def ended(self) -> bool:
        """Whether it is done, failed or cancelled."""
        return self.state in ("done", "failed", "cancelled")

    @property
    def seconds_left(self) -> float | None:
        """Expected seconds to its end by the pace since the first step; None up to that."""
        done, total = self.done, self.total
        if self.ended or done <= self._first or total < done:
            return None
        return (time.monotonic() - self._begun) / (done - self._first) * (total - done)

    def cancel(self) -> None:
        """Stop it; nothing if it has ended. No callback comes afterwards except that of the end."""
        self._stop(self)
