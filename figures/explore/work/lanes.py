"""Where calls of `jobs` are made: threads of another process, or of this one for runs that only this one can open."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any
from unittest import mock

from figures.explore.work import stopping
from figures.explore.work.messages import answer_bytes, ending, from_bytes, one_line, plain_error, to_bytes

if TYPE_CHECKING:  # a process is started before this one has loaded torch
    from figures.explore.work.addresses import Address

Answer = Callable[[int, Any, Exception | None], None]
"""(number of the call, its result, or the error that it raised) -> None."""

Steps = Callable[[int, int, int], None]
"""(number of the call, steps done, all steps) -> None."""

NICE = 10
"""Added to the niceness of long computations, so that the page's own come first."""

LOADED = ("figures.page.stage_round", "figures.explore.work.points")
"""Modules of what quick calls compute."""

FORKED = sys.platform == "linux"
"""Whether processes are copies of one that has loaded these; elsewhere a copy may not use libraries of the system."""


_STARTING = threading.Lock()  # one process at a time, as what this one runs is hidden from it


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

    def outcome(self, steps: Steps, *, long: bool) -> tuple[Any, Exception | None]:
        """Result and error of the call, made in this thread; it ends at a step (`stopping.step`) when it is stopped.

        Args:
            steps: Called with each step.
            long: Whether all analyses of its runs report steps.
        """
        with stopping.call(self.number, steps):
            try:
                runs = [address.run() for address in self.addresses]
                runs = [run.with_progress(stopping.step) for run in runs] if long else runs
                return self.function(runs[0] if self.single else runs, *self.arguments), None
            except Exception as reason:  # noqa: BLE001 - sent to the page, which shows it
                return None, plain_error(reason)


class ThreadLane:
    """Threads of this process; see `ProcessLane`."""

    def __init__(self, threads: int, answer: Answer, steps: Steps, *, long: bool = False) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="explore")
        self._answer, self._steps, self._long_calls = answer, steps, long
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
        outcome = call.outcome(self._steps, long=self._long_calls)
        self._open_calls.discard(call.number)
        self._answer(call.number, *outcome)


class ProcessLane:
    """A process that opens runs once and makes calls with several threads.

    Args:
        threads: Calls at a time.
        answer: Called in a thread of this process with each answer; a call that the process did not survive has the
            error `LostProcess`.
        steps: Called there with the steps of calls that have no answer yet.
        long: Whether its calls are long computations, which give way to others.
    """

    def __init__(self, threads: int, answer: Answer, steps: Steps, *, long: bool = False) -> None:
        self._threads, self._answer, self._steps, self._long_calls = threads, answer, steps, long
        self._lock = threading.Lock()
        self._process: Any = None
        self._connection: Connection | None = None
        self._open_calls: set[int] = set()

    def start(self) -> None:
        """Start the process, which imports what calls need, in a thread; the first call does it otherwise."""
        threading.Thread(target=self._started, daemon=True, name="explore start").start()

    def send(self, call: Call) -> None:
        """Start a call."""
        message = to_bytes(call)
        if failed := self._started(call.number):
            self._answer(call.number, None, failed)
            return
        with self._lock, contextlib.suppress(OSError):  # if it has died, the reader answers for all open calls
            if self._connection is not None:
                self._connection.send_bytes(message)

    def stop(self, numbers: Iterable[int]) -> list[int]:
        """Let calls end soon, without an answer; returns those that had none yet."""
        with self._lock:
            wanted = [number for number in numbers if number in self._open_calls]
            self._open_calls.difference_update(wanted)
            if wanted and self._connection is not None:
                with contextlib.suppress(OSError):
                    self._connection.send_bytes(to_bytes(wanted))
        return wanted

    def close(self) -> None:
        """End the process at once; files of a run are whole or absent, and unfinished results resume."""
        with self._lock:
            self._open_calls.clear()
            if self._process is not None:
                self._process.kill()
                self._process.join()

    def _started(self, *numbers: int) -> LostProcess | None:
        """Start the process where there is none, for open calls of these numbers; why it cannot be, else None."""
        with self._lock:
            try:
                if self._connection is None:
                    self._start()
            except (OSError, EOFError, RuntimeError) as reason:
                return LostProcess(f"no process can be started for it: {one_line(reason)}.")
            self._open_calls.update(numbers)
        return None

    def _start(self) -> None:
        context: Any = get_context("forkserver" if FORKED else "spawn")
        if FORKED:
            context.set_forkserver_preload(list(LOADED))
        connection, theirs = context.Pipe()
        arguments = (theirs, self._threads, self._long_calls)
        process = context.Process(target=_serve, args=arguments, daemon=True, name="fedscape explore")
        hidden = dict.fromkeys(("__file__", "__spec__"))  # else the process runs a script without a main guard again
        with _STARTING, mock.patch.multiple(sys.modules["__main__"], create=True, **hidden):
            process.start()
        theirs.close()
        threading.Thread(target=self._read, args=(process, connection), daemon=True, name="explore answers").start()
        self._process, self._connection = process, connection

    def _read(self, process: Any, connection: Connection) -> None:
        while True:
            try:
                message = connection.recv_bytes()
            except (EOFError, OSError):
                break
            number, *content = from_bytes(message)
            steps, ended = content[0], len(content) > 1
            with self._lock:
                wanted = number in self._open_calls
                self._open_calls.difference_update([number] if ended else ())
            if wanted and ended:
                self._answer(number, *content)
            elif wanted:
                self._steps(number, *steps)
        process.join()
        with self._lock:
            lost, self._open_calls, self._connection = self._open_calls, set(), None
            connection.close()
        for number in lost:
            self._answer(
                number, None, LostProcess(f"the process of the computation died ({ending(process.exitcode)}).")
            )


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
        steps = lambda number, *steps: send(to_bytes((number, steps)))  # noqa: E731
        send(answer_bytes(call.number, *call.outcome(steps, long=long)))

    with ThreadPoolExecutor(2 * threads + 1, initializer=_one_thread) as pool:  # stopped calls take a moment to end
        if not long:
            for name in LOADED:
                pool.submit(importlib.import_module, name)
        while True:
            try:
                message = connection.recv_bytes()
            except (EOFError, OSError):
                os._exit(0)  # the server has ended; what runs is of no use
            content = from_bytes(message)
            if isinstance(content, Call):
                pool.submit(answer, content)
            else:
                for number in content:
                    stopping.stop(number)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
