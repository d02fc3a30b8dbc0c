"""Worker processes that keep what they were given once, and are replaced when they die."""

from __future__ import annotations

import pickle
import signal
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any

from drift.parallel.shared_tensors import packed, unpacked
from landscape.sweep.memory import keep_memory

LIVES = 3
"""Workers that a job may cost before it is given up: by then it is the job that kills them."""


class Crashed(RuntimeError):
    """A job whose worker died each time that it was tried."""


@dataclass(frozen=True)
class Ended:
    """A job that has ended: its place among the jobs, and its result, or the error that it raised."""

    place: int
    result: Any = None
    error: Exception | None = None


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection


class Workers:
    """Fresh processes on this machine, each with `begin(*given)` made once; a context that ends them.

        with Workers(2, opened, path) as workers:
            for ended in workers.results(work, jobs):
                ...

    A job is `work(begun, job)` and has to be pure: when its worker dies (`kill -9`, out of memory), a fresh one does
    it again. At the end, or when `results` is left, what is still being done is stopped at once.

    Args:
        number: Processes.
        begin: Makes what all jobs of a worker need; found by its name, as `work` is.
        given: What it is given.
    """

    def __init__(self, number: int, begin: Callable[..., Any], *given: Any) -> None:
        if number < 1:
            raise ValueError(f"workers is {number}; give 1 or more.")
        self._given = packed((begin, given))
        self._staff = [self._hired() for _ in range(number)]

    def results(
        self,
        work: Callable[[Any, Any], Any],
        jobs: Sequence[Any],
        *,
        watch: Callable[[set[int]], None] | None = None,
        seconds: float | None = None,
    ) -> Generator[Ended]:
        """Every job as it ends, whatever their order.

        Args:
            watch: Hears the places of the jobs that are being done, at least every so many `seconds`.

        Raises:
            Crashed: As the error of a job that killed LIVES workers; the others go on.
        """
        waiting, deaths = deque(range(len(jobs))), Counter[int]()
        busy: dict[int, int] = {}  # worker -> place
        try:
            while waiting or busy:
                for number in range(len(self._staff)):
                    if waiting and number not in busy:
                        busy[number] = waiting.popleft()
                        self._send(number, packed((work, jobs[busy[number]])))
                if watch is not None:
                    watch(set(busy.values()))
                staff = {number: self._staff[number] for number in busy}
                ends: list[Any] = [end for one in staff.values() for end in (one.connection, one.process.sentinel)]
                ready = wait(ends, seconds)
                for number, one in staff.items():
                    if one.connection not in ready and one.process.sentinel not in ready:
                        continue
                    place, answer = busy.pop(number), _answer(one.connection)
                    if answer is not None:
                        result, error = unpacked(answer)
                        yield Ended(place, result, error)
                        continue
                    self._replace(number)
                    deaths[place] += 1
                    if deaths[place] < LIVES:
                        waiting.appendleft(place)
                    else:
                        yield Ended(place, error=_crashed(one))
        finally:
            for number in busy:
                self._replace(number)

    def pids(self) -> list[int]:
        """Process numbers of the workers."""
        return [one.process.pid or 0 for one in self._staff]

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._staff:
            one.process.kill()  # jobs are pure, and files are whole or absent: stopping at any instant is safe
        for one in self._staff:
            _stop(one)

    def _hired(self) -> _Worker:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._given), daemon=True, name="fedscape worker")
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _send(self, number: int, message: bytes) -> None:
        try:
            self._staff[number].connection.send_bytes(message)
        except (BrokenPipeError, ConnectionResetError):  # it died while idle; another one is not to be blamed on a job
            self._replace(number)
            self._staff[number].connection.send_bytes(message)

    def _replace(self, number: int) -> None:
        _stop(self._staff[number])
        self._staff[number] = self._hired()


def _stop(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.join()
    worker.connection.close()


def _answer(connection: Connection) -> bytes | None:
    """What a worker answered; None if it died before, or while it did."""
    try:
        return connection.recv_bytes()
    except (EOFError, OSError):
        return None


def _crashed(worker: _Worker) -> Crashed:
    worker.process.join()
    code = worker.process.exitcode or 0
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return Crashed(
        f"{LIVES} workers died one after the other on the same job, the last by {how}; if it was signal 9, memory may "
        "have run out: use fewer workers, or a smaller batch."
    )


def _serve(connection: Connection, given: bytes) -> None:
    """In a worker: make what was given, then do jobs until nobody is left to give one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches workers too; the one who started them ends them
    begin, arguments = unpacked(given)
    keep_memory()
    begun: list[Any] = []
    while True:
        try:
            message = connection.recv_bytes()
        except (EOFError, OSError):
            return
        result, problem = None, None
        try:
            work, job = unpacked(message)
            if not begun:
                begun.append(begin(*arguments))
            result = work(begun[0], job)
        except Exception as error:  # noqa: BLE001 - handed over: the one who waits raises it
            problem = _portable(error)
        try:
            connection.send_bytes(packed((result, problem)))
        except (BrokenPipeError, ConnectionResetError):
            return


def _portable(error: Exception) -> Exception:
    """An error that can be sent: itself, or the built-in kind that it is of, with its message."""
    error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except (TypeError, AttributeError, pickle.PicklingError):
        kind = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
        plain: Exception = kind(str(error))
        plain.add_note("".join(traceback.format_exception(error)))
        return plain
    return error
