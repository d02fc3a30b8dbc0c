"""Work on runs that only this process can open, in its threads: runs with a task or metrics of the user's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from figures.explore.work.addresses import Address
from figures.explore.work.processes import Answer, call_outcome, computation_outcome


class LocalThreads:
    """Calls as `processes.WarmProcess` answers them."""

    def __init__(self, threads: int, answer: Answer) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="explore")
        self._answer = answer

    def send(self, number: int, function: Callable[..., Any], address: Address, item: Any) -> None:
        """Start a call."""
        self._pool.submit(lambda: self._answer(number, *call_outcome(function, address, item)))

    def close(self) -> None:
        """Start no further calls."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class LocalComputation:
    """A computation as `processes.LongProcess`, stopped at its next step."""

    def __init__(
        self,
        function: Callable[..., Any],
        addresses: Sequence[Address],
        single: bool,
        arguments: tuple[Any, ...],
        progress: Callable[[int, int], None],
        end: Callable[[Any, Exception | None], None],
    ) -> None:
        self._stopped = False

        def report(done: int, total: int) -> None:
            if self._stopped:
                raise Stopped("stopped by the user.")
            progress(done, total)

        def compute() -> None:
            outcome = computation_outcome(function, addresses, single, arguments, report)
            if not self._stopped:
                end(*outcome)

        threading.Thread(target=compute, daemon=True, name="explore computation").start()

    def stop(self) -> None:
        """Stop it when it reports its next step."""
        self._stopped = True


class Stopped(RuntimeError):
    """A computation that the user has stopped."""
