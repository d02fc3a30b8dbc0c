"""A thread that writes rounds in order while the next one trains, with one commit point per round."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Self

import psutil
from torch import Tensor

from drift.config.method_values import State
from drift.simulation.unfinished_round import UnfinishedRound
from drift.store import files, links, server_state
from drift.store.keep import Keep
from drift.store.round_record import Round
from drift.training.server import Server
from landscape.model.mapped_files import is_mapped

WAITING = 2
"""Largest number of rounds in the queue, without the one being written."""

SHARE = 0.1
"""Part of the free memory that waiting rounds may take; beyond it a round is written before the next one trains."""


@dataclass(frozen=True)
class _Write:
    number: int
    trained: UnfinishedRound
    state: State | None
    clients: Mapping[int, State]
    following: int


@dataclass(frozen=True)
class _Done:
    """Result of a job: the committed record, or the error that stopped the writer."""

    number: int
    record: Round | None = None
    error: BaseException | None = None


class Writer:
    """Writes rounds of one run in the background; a context that ends when all of them are on disk.

        with Writer(folder, keep, rounds) as writer:
            for ...:
                writer.put(trained, server)
                done = writer.committed()

    A round is its file, then the states of its clients, then state.safetensors, the commit point; the next one is
    begun after that. A write that fails stops the writer: rounds after it are dropped, and its error is raised by the
    next call. Left by an exception, as by Ctrl-C, it writes what waits first.

    Each file names `run` and the link of the round before it (`drift.store.links`); `before` is that of the first one
    put.

    The two threads share nothing but two `SimpleQueue`s, whose operations no Ctrl-C can interrupt halfway: one that
    falls between taking a lock and entering its block would leave it taken, and the other thread waiting for ever.
    """

    def __init__(self, folder: Path, keep: Keep, rounds: int, run: str = "", before: str = "") -> None:
        self.folder, self.keep, self.rounds = folder, keep, rounds
        self._run, self._before = run, before  # `before` belongs to the thread: the link of the last round written
        self._jobs: SimpleQueue[_Write | None] = SimpleQueue()
        self._results: SimpleQueue[_Done] = SimpleQueue()
        self._put = self._answered = 0
        self._written: list[Round] = []
        self._error: BaseException | None = None
        self._dropping = False
        # should even closing be interrupted, the process ends all the same: files are whole or absent
        self._thread = threading.Thread(target=self._work, name="fedscape writer", daemon=True)

    def put(self, trained: UnfinishedRound, server: Server | None) -> None:
        """Have a round finished and written, and the server after it; None: the record alone, which commits nothing.

        Waits while WAITING rounds wait already, or where memory is short. Neither may be changed afterwards.

        Raises:
            OSError: If an earlier round could not be written.
        """
        self._wait(WAITING)
        job = _Write(self._put + 1, trained, None, {}, 0)
        if server is not None:
            state = {name: value.detach().cpu() for name, value in server.tensors().items()}
            job = replace(job, state=state, clients=server.clients, following=server.next)
        self._jobs.put(job)
        self._put += 1
        if _bytes(trained.record) * (WAITING + 1) > SHARE * psutil.virtual_memory().available:
            self._wait(0)

    def committed(self, seconds: float = 0.0) -> list[Round]:
        """Rounds committed since the last call; waits at most `seconds` for the last one.

        Raises:
            OSError: If a round could not be written.
        """
        self._wait(0, seconds)
        records, self._written = self._written, []
        return records

    def flush(self) -> None:
        """Wait until everything is on disk.

        Raises:
            OSError: If a round could not be written.
        """
        self._wait(0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._jobs.put(None)
        try:
            self._thread.join()
        except KeyboardInterrupt:  # a second one: what waits is dropped, what is being written becomes whole
            self._dropping = True
            self._thread.join()
            raise
        if error is None:
            self._wait(0)

    def _wait(self, most: int, seconds: float | None = None) -> None:
        """Process the thread's results until at most `most` rounds are pending or the time is over."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            unanswered = self._put - self._answered
            left = None if end is None else max(0.0, end - time.monotonic())
            waits = unanswered > most and self._error is None
            try:
                done = self._results.get(block=waits and left != 0, timeout=left or None)
            except Empty:
                break
            self._answered = done.number
            self._error = self._error or done.error
            if done.record is not None:
                self._written.append(done.record)
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if self._dropping:
                continue
            try:
                record = self._write(job)
            except BaseException as reason:  # noqa: BLE001 - handed over: the thread that trains raises it
                self._results.put(_Done(job.number, error=reason))
                return
            self._results.put(_Done(job.number, record if job.state is not None else None))

    def _write(self, job: _Write) -> Round:
        origin, record = links.origin(self._run, self._before), job.trained.finished()
        record = replace(record, **{field.name: _moved(getattr(record, field.name)) for field in fields(record)})
        files.write_round(self.folder, record, self.keep, self.rounds, origin)
        self._before = files.link(record)
        if job.state is not None:
            origin = links.origin(self._run, self._before)
            server_state.write(self.folder, job.state, job.clients, job.following, origin)
        return record


def _moved(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().cpu()
    return {name: _moved(item) for name, item in value.items()} if isinstance(value, dict) else value


def _bytes(record: Round) -> int:
    values = [getattr(record, field.name) for field in fields(record)]
    values += [item for value in values if isinstance(value, dict) for item in value.values()]
    return sum(value.nbytes for value in values if isinstance(value, Tensor) and not is_mapped(value))
