"""Worker processes that keep data between jobs, and are replaced when they die."""

import os
import pickle
import signal
import threading
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Self

import torch

from drift.parallel.job_pool import Crashed, JobPool, JobResult, JobWatch, no_state, require_workers
from drift.parallel.shared_tensors import MemoryRegion, SharedValue, deserialize, serialize, share_memory

LIVES = 3
"""Crashes of workers after which a job is reported as failed."""


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection


class Workers(JobPool):
    """Fresh processes on this machine that each call `begin(*arguments)` once; a context that ends them.

        with Workers(2, opened, path) as workers:
            for finished in workers.results(work, jobs):
                ...

    Torch has one thread in them. At the end, or when `results` is left, running jobs are stopped at once. A job that
    kills LIVES workers has the error `Crashed`. Warnings of a job are given again in this process.

    Args:
        number: Number of processes.
        begin: Function of a module that returns what all jobs of a worker need, by default None; so is `work`.
        arguments: Arguments of `begin`.
    """

    def __init__(self, number: int, begin: Callable[..., Any] = no_state, *arguments: Any) -> None:
        require_workers(number)
        self.number, self._call = number, (begin, arguments)  # held, as workers may map files of its tensors
        self._begin, self._region = share_memory(self._call)
        self._workers = [self._start() for _ in range(number)]

    def results(
        self, work: Callable[..., Any], jobs: Sequence[Any], *, shared: Any = None, watch: JobWatch | None = None
    ) -> Generator[JobResult]:
        """Results of all jobs in the order in which they finish, as a `JobPool` returns them."""
        waiting, deaths = deque(range(len(jobs))), Counter[int]()
        busy: dict[int, int] = {}  # worker -> place
        value, region = (None, None) if shared is None else share_memory(shared)
        try:
            while waiting or busy:
                for number in range(len(self._workers)):
                    if waiting and number not in busy:
                        busy[number] = waiting.popleft()
                        self._send(number, serialize((work, value, jobs[busy[number]])))
                if watch is not None:
                    watch.call(set(busy.values()))
                running = {number: self._workers[number] for number in busy}
                ends: list[Any] = [
                    end for worker in running.values() for end in (worker.connection, worker.process.sentinel)
                ]
                ready = wait(ends, None if watch is None else watch.seconds)
                for number, worker in running.items():
                    if worker.connection not in ready and worker.process.sentinel not in ready:
                        continue
                    index, answer = busy.pop(number), _receive(worker.connection)
                    if answer is not None:
                        result, error, warned = deserialize(answer)
                        for warning in warned:
                            warnings.warn(warning, stacklevel=3)
                        yield JobResult(index, result, error)
                        continue
                    self._replace(number)
                    deaths[index] += 1
                    if deaths[index] < LIVES:
                        waiting.appendleft(index)
                    else:
                        yield JobResult(index, error=_crash_error(worker))
        finally:
            for number in busy:
                self._replace(number)
            if region is not None:
                region.close()

    @contextmanager
    def memory(self, size: int) -> Iterator[Path | None]:
        """Context with the path of `size` bytes that all workers may write to."""
        with MemoryRegion(size) as region:
            yield Path(region.path)

    def pids(self) -> list[int]:
        """Process numbers of the workers."""
        return [worker.process.pid or 0 for worker in self._workers]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._workers:
            worker.process.kill()  # jobs are pure, and files are whole or absent: stopping at any instant is safe
        for worker in self._workers:
            _stop(worker)
        self._region.close()

    def _start(self) -> _Worker:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._begin), daemon=True, name="fedscape worker")
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _send(self, number: int, message: bytes) -> None:
        try:
            self._workers[number].connection.send_bytes(message)
        except (BrokenPipeError, ConnectionResetError):  # it died while idle, which is no fault of the job
            self._replace(number)
            self._workers[number].connection.send_bytes(message)

    def _replace(self, number: int) -> None:
        _stop(self._workers[number])
        self._workers[number] = self._start()


def _stop(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.join()
    worker.connection.close()


def _receive(connection: Connection) -> bytes | None:
    """The answer of a worker; None if it died before the end of it."""
    try:
        return connection.recv_bytes()
    except (EOFError, OSError):
        return None


def _crash_error(worker: _Worker) -> Crashed:
    worker.process.join()
    code = worker.process.exitcode or 0
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return Crashed(
        f"{LIVES} workers died one after the other on the same job, the last by {how}; if it was signal 9, memory may "
        "have run out: use fewer workers, or a smaller batch."
    )


def _end_with_parent() -> None:
    """End this process when its parent has ended, by `kill -9` too: its results are of no use, and it holds locks."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


def _serve(connection: Connection, begin_call: SharedValue) -> None:
    """Main function of a worker: begin at the first job, run jobs until the connection closes."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches workers too; the parent process ends them
    torch.set_num_threads(1)
    state: list[Any] = []
    number, shared = -1, None
    while True:
        try:
            message = connection.recv_bytes()
        except (EOFError, OSError):
            return
        result, problem = None, None
        with warnings.catch_warnings(record=True) as caught:
            try:
                work, value, job = deserialize(message)
                if not state:
                    begin, arguments = begin_call.load()
                    state.append(begin(*arguments))
                if value is not None and value.number != number:
                    number, shared = value.number, value.load()
                result = work(state[0], job) if value is None else work(state[0], shared, job)
            except Exception as error:  # noqa: BLE001 - sent to the parent process, which raises it
                problem = _picklable(error)
        texts = [warning.category(str(warning.message)) for warning in caught]
        try:
            connection.send_bytes(serialize((result, problem, texts)))
        except (BrokenPipeError, ConnectionResetError):
            return


def _picklable(error: Exception) -> Exception:
    """An error that can be sent: itself, or the nearest built-in class of it with its message."""
    error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except (TypeError, AttributeError, pickle.PicklingError):
        kind = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
        plain: Exception = kind(str(error))
        plain.add_note("".join(traceback.format_exception(error)))
        return plain
    return error
