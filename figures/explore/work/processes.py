"""The processes behind `jobs`: one that stays warm and answers with several threads, and one per long computation."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from drift.parallel.shared_tensors import deserialize, serialize
from figures.explore.work import stopping
from figures.explore.work.addresses import Address

Answer = Callable[[int, Any, Exception | None], None]
"""(number of the call, its result, or the error that it raised) -> None."""

NICE = 10
"""Added to the niceness of long computations, so that the page's own come first."""


class Lost(RuntimeError):
    """The process of a call has died."""


class WarmProcess:
    """A process that opens runs once and answers calls `function(run, item)` with several threads.

    Args:
        threads: Calls at a time.
        answer: Called in a thread of this process with each answer; a call that the process did not survive has the
            error `Lost`.
    """

    def __init__(self, threads: int, answer: Answer) -> None:
        self._threads, self._answer = threads, answer
        self._lock = threading.Lock()
        self._process: Any = None
        self._connection: Connection | None = None
        self._open_calls: set[int] = set()

    def start(self) -> None:
        """Start the process, which imports what calls need; the first call does it otherwise."""
        with self._lock:
            if self._connection is None:
                self._start()

    def send(self, number: int, function: Callable[..., Any], address: Address, item: Any) -> None:
        """Start a call."""
        message = serialize((number, function, address, item))
        with self._lock:
            self._open_calls.add(number)
            if self._connection is None:
                self._start()
            with contextlib.suppress(OSError):  # if it has died, the reader answers for all open calls
                self._connection.send_bytes(message)  # type: ignore[union-attr]

    def stop(self, numbers: Sequence[int]) -> list[int]:
        """Let calls end soon, without an answer; returns those that had none yet."""
        with self._lock:
            wanted = [number for number in numbers if number in self._open_calls]
            self._open_calls.difference_update(wanted)
            if wanted and self._connection is not None:
                with contextlib.suppress(OSError):
                    self._connection.send_bytes(serialize(wanted))
        return wanted

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._open_calls.clear()
            if self._process is not None:
                self._process.kill()
                self._process.join()

    def _start(self) -> None:
        self._process, self._connection = _spawn(_serve, self._threads)
        arguments = (self._process, self._connection)
        threading.Thread(target=self._read, args=arguments, daemon=True, name="explore answers").start()

    def _read(self, process: Any, connection: Connection) -> None:
        while True:
            try:
                number, result, error = deserialize(connection.recv_bytes())
            except (EOFError, OSError):
                break
            with self._lock:
                wanted = number in self._open_calls
                self._open_calls.discard(number)
            if wanted:
                self._answer(number, result, error)
        process.join()
        with self._lock:
            lost, self._open_calls, self._connection = self._open_calls, set(), None
            connection.close()
        for number in lost:
            self._answer(number, None, Lost(f"the process of the computation died ({_how(process.exitcode)})."))


class LongProcess:
    """A process of its own for one computation `function(run or runs, *arguments)`, stopped at any instant.

    Args:
        single: Whether the function takes one run, not a list.
        progress: Called with (steps done, all steps).
        end: Called once with (result, error); not after `stop`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        addresses: Sequence[Address],
        single: bool,
        arguments: tuple[Any, ...],
        progress: Callable[[int, int], None],
        end: Callable[[Any, Exception | None], None],
    ) -> None:
        self._progress, self._end, self._stopped = progress, end, False
        self._process, self._connection = _spawn(_compute)
        self._connection.send_bytes(serialize((function, addresses, single, arguments)))
        threading.Thread(target=self._read, daemon=True, name="explore computation").start()

    def stop(self) -> None:
        """Stop at once; files of a run are whole or absent, and unfinished results resume."""
        self._stopped = True
        self._process.kill()

    def _read(self) -> None:
        outcome: tuple[Any, Exception | None] | None = None
        try:
            while outcome is None:
                kind, *content = deserialize(self._connection.recv_bytes())
                if kind == "progress":
                    self._progress(*content)
                else:
                    outcome = (content[0], content[1])
        except (EOFError, OSError):
            pass
        self._process.join()
        self._connection.close()
        if self._stopped:
            return
        how = _how(self._process.exitcode)
        self._end(*(outcome or (None, Lost(f"the process of the computation died ({how})."))))


def _spawn(target: Callable[..., None], *arguments: Any) -> tuple[Any, Connection]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *arguments), daemon=True, name="fedscape explore")
    process.start()
    theirs.close()
    return process, ours


def _serve(connection: Connection, threads: int) -> None:
    """Main function of the warm process."""
    _prepare()
    lock = threading.Lock()

    def answer(number: int, function: Callable[..., Any], address: Address, item: Any) -> None:
        with stopping.call(number):
            message = _message(number, *call_outcome(function, address, item))
        with lock:
            connection.send_bytes(message)

    with ThreadPoolExecutor(2 * threads + 1, initializer=_one_thread) as pool:  # stopped calls take a moment to end
        pool.submit(importlib.import_module, "figures.explore.plane.survey_results")
        while True:
            try:
                message = connection.recv_bytes()
            except (EOFError, OSError):
                os._exit(0)  # the server has ended; what runs is of no use
            content = deserialize(message)
            if isinstance(content, list):
                for number in content:
                    stopping.stop(number)
            else:
                pool.submit(answer, *content)


def _compute(connection: Connection) -> None:
    """Main function of a long computation."""
    _prepare()
    if hasattr(os, "nice"):  # not on Windows
        os.nice(NICE)
    function, addresses, single, arguments = deserialize(connection.recv_bytes())
    threading.Thread(target=_end_with_server, args=(connection,), daemon=True).start()

    def report(done: int, total: int) -> None:
        connection.send_bytes(serialize(("progress", done, total)))

    outcome = computation_outcome(function, addresses, single, arguments, report)
    connection.send_bytes(_message("end", *outcome))


def _end_with_server(connection: Connection) -> None:
    """Wait for the end of the server, which sends nothing more, and end with it."""
    try:
        connection.recv_bytes()
    except (EOFError, OSError):
        os._exit(0)


def computation_outcome(
    function: Callable[..., Any],
    addresses: Sequence[Address],
    single: bool,
    arguments: tuple[Any, ...],
    report: Callable[[int, int], None],
) -> tuple[Any, Exception | None]:
    try:
        runs = [address.run().with_progress(report) for address in addresses]
        return function(runs[0] if single else runs, *arguments), None
    except Exception as reason:  # noqa: BLE001 - sent to the page, which shows it
        return None, _plain(reason)


def _prepare() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches workers too; the server ends them
    _one_thread()


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def call_outcome(function: Callable[..., Any], address: Address, item: Any) -> tuple[Any, Exception | None]:
    try:
        return function(address.run(), item), None
    except Exception as reason:  # noqa: BLE001 - sent to the page, which shows it
        return None, _plain(reason)


def _message(first: int | str, result: Any, error: Exception | None) -> bytes:
    """An answer in bytes; a result that cannot be sent becomes an error."""
    try:
        return serialize((first, result, error))
    except (TypeError, AttributeError, pickle.PicklingError) as reason:
        return serialize((first, None, TypeError(f"the result cannot be sent: {reason}")))


def _plain(error: Exception) -> Exception:
    """The nearest built-in class of an error with its message, which any process can read."""
    kind = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
    return kind(" ".join(str(error).split()) or type(error).__name__)


KILLED = getattr(signal, "SIGKILL", 9)


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {-code}" + ("; memory may have run out" if code == -KILLED else "")
    return f"exit code {code}"
