"""Rounds written by a thread while the next one trains: in order, one commit point each, few of them waiting."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
from torch import Tensor

from drift import store
from drift.keep import Keep
from drift.method import State
from drift.rounds import Round
from drift.server import Server

WAITING = 2
"""Rounds that wait to be written, at most, beside the one that is being written."""

SHARE = 0.1
"""Part of the free memory that waiting rounds may take; beyond it a round is written before the next one trains."""


@dataclass(frozen=True)
class _Job:
    record: Round
    state: State | None
    following: int


class Writer:
    """Writes rounds of one run in the background; a context that ends when all of them are on disk.

        with Writer(folder, keep, rounds) as writer:
            for ...:
                writer.put(record, server)
                done = writer.committed()

    A round is its file, then state.safetensors, the commit point; the next one is begun after that. A write that fails
    stops the writer: rounds after it are dropped, and its error is raised by the next call. Left by an exception, as
    by Ctrl-C, it writes what waits first.
    """

    def __init__(self, folder: Path, keep: Keep, rounds: int) -> None:
        self.folder, self.keep, self.rounds = folder, keep, rounds
        self._change = threading.Condition()
        self._jobs: deque[_Job] = deque()
        self._written: deque[Round] = deque()
        self._busy = self._closed = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="fedscape writer")

    def put(self, record: Round, server: Server | None) -> None:
        """Have a round written, and the server after it; None writes the record alone, which commits nothing.

        Waits while WAITING rounds wait already, or where memory is short. Neither may be changed afterwards.

        Raises:
            OSError: If an earlier round could not be written.
        """
        job = _Job(
            _on_cpu(record),
            None if server is None else {name: value.detach().cpu() for name, value in server.tensors().items()},
            0 if server is None else server.next,
        )
        with self._change:
            self._change.wait_for(lambda: self._error is not None or len(self._jobs) < WAITING)
            self._raise()
            self._jobs.append(job)
            self._change.notify_all()
            if _bytes(record) * (WAITING + 1) > SHARE * psutil.virtual_memory().available:
                self._change.wait_for(self._idle)
                self._raise()

    def committed(self, seconds: float = 0.0) -> list[Round]:
        """Rounds committed since the last call; waits for the last one put, at most so many seconds.

        Raises:
            OSError: If a round could not be written.
        """
        with self._change:
            if seconds > 0:
                self._change.wait_for(self._idle, seconds)
            self._raise()
            found = list(self._written)
            self._written.clear()
            return found

    def flush(self) -> None:
        """Wait until everything is on disk.

        Raises:
            OSError: If a round could not be written.
        """
        with self._change:
            self._change.wait_for(self._idle)
            self._raise()

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._change:
            self._closed = True
            self._change.notify_all()
        try:
            self._thread.join()
        except KeyboardInterrupt:  # a second one: what waits is dropped, what is being written becomes whole
            with self._change:
                self._jobs.clear()
            self._thread.join()
            raise
        if self._error is not None and error is None:
            self._raise()

    def _idle(self) -> bool:
        return self._error is not None or not (self._jobs or self._busy)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._jobs or self._closed)
                if not self._jobs:
                    return
                job = self._jobs.popleft()
                self._busy = True
                self._change.notify_all()
            error: BaseException | None = None
            try:
                self._write(job)
            except BaseException as reason:  # noqa: BLE001 - handed over: the thread that trains raises it
                error = reason
            with self._change:
                self._busy = False
                if error is None and job.state is not None:
                    self._written.append(job.record)
                self._error = error
                if error is not None:
                    self._jobs.clear()
                self._change.notify_all()
            if error is not None:
                return

    def _write(self, job: _Job) -> None:
        store.write_round(self.folder, job.record, self.keep, self.rounds)
        if job.state is not None:
            store.write_tensors(self.folder / "state.safetensors", job.state, {"next": job.following})


def _on_cpu(record: Round) -> Round:
    """The record off the accelerator; the same where it is on none."""
    return replace(record, **{field.name: _moved(getattr(record, field.name)) for field in fields(record)})


def _moved(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {name: _moved(part) for name, part in value.items()}
    return value


def _bytes(record: Round) -> int:
    values = [getattr(record, field.name) for field in fields(record)]
    values += [part for value in values if isinstance(value, dict) for part in value.values()]
    return sum(value.numel() * value.element_size() for value in values if isinstance(value, Tensor))
