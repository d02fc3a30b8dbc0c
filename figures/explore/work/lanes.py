"""Where calls of `jobs` are made: threads of another process, or of this one for runs that only this one can open."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from drift.parallel.shared_tensors import deserialize, serialize
from figures.explore.work import stopping
from figures.explore.work.addresses import Address

Answer = Callable[[int, Any, Exception | None], None]
"""(number of the call, its result, or the error that it raised) -> None."""

Progress = Callable[[int, int], None]
"""(steps done, all steps) -> None."""

NICE = 10
"""Added to the niceness of long computations, so that the page's own come first."""


class LostProcess(RuntimeError):
    """The process of a call has died."""


@dataclass(frozen=True)
class Call:
    """`function(run or runs, *arguments)`.

    Args:
        number: Of this call alone.
        single: Whether the function takes one run, not a list.
    """

    number: int
    function: Callable[..., Any]
    addresses: tuple[Address, ...]
    arguments: tuple[Any, ...]
    single: bool = True

    @property
    def only_here(self) -> bool:
        """Whether no other process can open its runs."""
        return any(address.local is not None for address in self.addresses)

    def outcome(self, progress: Progress | None = None) -> tuple[Any, Exception | None]:
        """Result and error of the call, made in this thread; it ends at a step when it is stopped."""

        def step(done: int, total: int) -> None:
            stopping.require_wanted()
            if progress is not None:
                progress(done, total)

        with stopping.call(self.number):
            try:
                runs = [address.run() for address in self.addresses]
                runs = runs if progress is None else [run.with_progress(step) for run in runs]
                return self.function(runs[0] if self.single else runs, *self.arguments), None
            except Exception as reason:  # noqa: BLE001 - sent to the page, which shows it
                return None, _plain(reason)


class ThreadLane:
    """Threads of this process; see `ProcessLane`."""

    def __init__(self, threads: int, answer: Answer, progress: Progress | None = None) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="explore")
        self._answer, self._progress = answer, progress
        self._open_calls: set[int] = set()

    def send(self, call: Call) -> None:
        """Start a call."""
        self._open_calls.add(call.number)
        self._pool.submit(self._make, call)

    def stop(self, numbers: Iterable[int]) -> list[int]:
        """Let calls end soon, each with an answer."""
        for number in self._open_calls.intersection(numbers):
            stopping.stop(number)
        return []

    def close(self) -> None:
        """Start no further calls, and let the others end soon."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.stop([*self._open_calls])

    def _make(self, call: Call) -> None:
        outcome = call.outcome(self._progress)
        self._open_calls.discard(call.number)
        self._answer(call.number, *outcome)


class ProcessLane:
    """A process that opens runs once and makes calls with several threads.

    Args:
        threads: Calls at a time.
        answer: Called in a thread of this process with each answer; a call that the process did not survive has the
            error `LostProcess`.
        progress: Of long computations, which report their steps and give way to others.
    """

    def __init__(self, threads: int, answer: Answer, progress: Progress | None = None) -> None:
        self._threads, self._answer, self._progress = threads, answer, progress
        self._lock = threading.Lock()
        self._process: Any = None
        self._connection: Connection | None = None
        self._open_calls: set[int] = set()

    def start(self) -> None:
        """Start the process, which imports what calls need; the first call does it otherwise."""
        with self._lock:
            if self._connection is None:
                self._start()

    def send(self, call: Call) -> None:
        """Start a call."""
        message = serialize(call)
        with self._lock:
            self._open_calls.add(call.number)
            if self._connection is None:
                self._start()
            with contextlib.suppress(OSError):  # if it has died, the reader answers for all open calls
                self._connection.send_bytes(message)  # type: ignore[union-attr]

    def stop(self, numbers: Iterable[int]) -> list[int]:
        """Let calls end soon, without an answer; returns those that had none yet."""
        with self._lock:
            wanted = [number for number in numbers if number in self._open_calls]
            self._open_calls.difference_update(wanted)
            if wanted and self._connection is not None:
                with contextlib.suppress(OSError):
                    self._connection.send_bytes(serialize(wanted))
        return wanted

    def close(self) -> None:
        """End the process at once; files of a run are whole or absent, and unfinished results resume."""
        with self._lock:
            self._open_calls.clear()
            if self._process is not None:
                self._process.kill()
                self._process.join()

    def _start(self) -> None:
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        arguments = (theirs, self._threads, self._progress is not None)
        self._process = context.Process(target=_serve, args=arguments, daemon=True, name="fedscape explore")
        self._process.start()
        theirs.close()
        shared = (self._process, self._connection)
        threading.Thread(target=self._read, args=shared, daemon=True, name="explore answers").start()

    def _read(self, process: Any, connection: Connection) -> None:
        while True:
            try:
                number, *content = deserialize(connection.recv_bytes())
            except (EOFError, OSError):
                break
            steps, ended = content[0], len(content) > 1
            with self._lock:
                wanted = number in self._open_calls
                self._open_calls.difference_update([number] if ended else ())
            if wanted and ended:
                self._answer(number, *content)
            elif wanted and self._progress is not None:
                self._progress(*steps)
        process.join()
        with self._lock:
            lost, self._open_calls, self._connection = self._open_calls, set(), None
            connection.close()
        for number in lost:
            self._answer(number, None, LostProcess(f"the process of the computation died ({_how(process.exitcode)})."))


def _serve(connection: Connection, threads: int, long: bool) -> None:
    """Main function of the process: calls come in, (number, (done, total)) and (number, result, error) go out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches workers too; the server ends them
    _one_thread()
    if long and hasattr(os, "nice"):  # not on Windows
        os.nice(NICE)
    lock = threading.Lock()

    def send(message: bytes) -> None:
        with lock:
            connection.send_bytes(message)

    def answer(call: Call) -> None:
        progress = (lambda *steps: send(serialize((call.number, steps)))) if long else None
        send(_message(call.number, *call.outcome(progress)))

    with ThreadPoolExecutor(2 * threads + 1, initializer=_one_thread) as pool:  # stopped calls take a moment to end
        if not long:
            pool.submit(importlib.import_module, "figures.explore.plane.survey_results")
        while True:
            try:
                message = connection.recv_bytes()
            except (EOFError, OSError):
                os._exit(0)  # the server has ended; what runs is of no use
            content = deserialize(message)
            if isinstance(content, Call):
                pool.submit(answer, content)
            else:
                for number in content:
                    stopping.stop(number)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _message(number: int, result: Any, error: Exception | None) -> bytes:
    """An answer in bytes; a result that cannot be sent becomes an error."""
    try:
        return serialize((number, result, error))
    except (TypeError, AttributeError, pickle.PicklingError) as reason:
        return serialize((number, None, TypeError(f"the result cannot be sent: {reason}")))


def _plain(error: Exception) -> Exception:
    """The nearest built-in class of an error with its message, which any process can read."""
    kind = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
    return kind(" ".join(str(error).split()) or type(error).__name__)


KILLED = getattr(signal, "SIGKILL", 9)


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {-code}" + ("; memory may have run out" if code == -KILLED else "")
    return f"exit code {code}"
