"""Jobs, and the clients of a cohort, shared by the workers of a Dask scheduler, on one machine or many.

The bits are those of one process where machines and versions of torch are alike. What all jobs need goes to each worker
once, as do a run's data, and the global model once per round; a client's training is a pure task keyed by (run, round,
client). Tasks of a worker that dies are repeated by others. If the scheduler is lost, a run stops with its last whole
round.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drift.config.method_values import Setting, State
from drift.engines.pure import Received, WorkerData
from drift.parallel.shared_tensors import deserialize, serialize
from drift.parallel.threads import torch_threads
from drift.parallel.worker_pool import Crashed, JobPool, JobResult
from drift.store.client_rows import RowFile
from drift.training.arrivals import Receive
from drift.training.client import Update
from drift.training.data import Data
from drift.training.server import Server
from landscape.sweep.memory import keep_memory

PATIENCE = 10.0
"""Seconds in which a scheduler has to answer."""

RESUME = "Whole rounds are kept; give the same command again, with a scheduler or without one: it goes on from there."


class Lost(RuntimeError):
    """The scheduler cannot be reached any more, or never could."""


class ClusterWorkers(JobPool):
    """The workers of a Dask scheduler as processes that share jobs, made by `cluster_workers`.

    Each job takes one process, whatever its threads, and torch has one thread.
    """

    def __init__(self, client: Any, begin: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._client, self._name = client, f"jobs-{secrets.token_hex(8)}"
        self.number = max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
        text = serialize((begin, arguments))
        self._begun = client.submit(Serialized, text, _begun, key=(self._name, "begin"), pure=False)

    def results(
        self,
        work: Callable[[Any, Any], Any],
        jobs: Sequence[Any],
        *,
        watch: Callable[[set[int]], None] | None = None,
        seconds: float | None = None,
    ) -> Generator[JobResult]:
        """Results of all jobs in the order in which they finish, as a `JobPool` returns them."""
        from distributed import as_completed

        places = {
            self._client.submit(_done, self._begun, serialize((work, job)), key=(self._name, place), pure=False): place
            for place, job in enumerate(jobs)
        }
        ended = (
            as_completed(list(places), loop=self._client.loop) if watch is None else _watched(places, watch, seconds)
        )
        for future in ended:
            error = future.exception()
            result = None if error is not None else deserialize(future.result())
            yield JobResult(places[future], result, error)


def _watched(places: dict[Any, int], watch: Callable[[set[int]], None], seconds: float | None) -> Iterator[Any]:
    """Futures as they end; `watch` is called with the places of the others."""
    pending = dict(places)
    while pending:
        watch(set(pending.values()))
        time.sleep(PATIENCE if seconds is None else seconds)
        for future in [future for future in pending if future.done()]:
            del pending[future]
            yield future


@contextmanager
def cluster_workers(address: str, begin: Callable[..., Any], *arguments: Any) -> Iterator[ClusterWorkers]:
    """Context with the workers of a scheduler, each of which calls `begin(*arguments)` once.

    Raises:
        Lost: If no scheduler answers at the address, or it is gone.
        Crashed: If one job killed several workers.
        LookupError: If Dask is not installed.
    """
    with connected(address) as client, losing(client):
        yield ClusterWorkers(client, begin, arguments)


class ClientCluster:
    """A client pool (`drift.engines.ClientPool`) of Dask workers, started by `cluster`."""

    idle = 1  # they may be on other machines

    def __init__(self, setting: Setting, run: str, client: Any, data: WorkerData) -> None:
        self.setting, self.client, self.name = setting, client, f"{run}-{os.getpid()}"
        self.data = client.submit(Serialized, serialize(data), key=(self.name, "data"), pure=False)

    def train(self, server: Server, start: Tensor, ids: np.ndarray, receive: Receive) -> list[Update]:
        """Updates of the clients `ids` of the server's next round, in their order.

        A model goes to its row in a file where `receive` has one and the worker sees that file; else it is sent.
        Updates are taken one at a time, in the order in which they finish, so that one model is in memory here.

        Raises:
            Lost: If the scheduler is gone.
            Crashed: If one client's training killed several workers.
            OSError: If the disk is full.
        """
        name, index = self.name, server.next
        received = serialize(Received.from_server(self.setting, server, start))
        updates = dict[int, Update]()
        with losing(self.client):
            from distributed import as_completed

            model = self.client.submit(Serialized, received, key=(name, index, "model"), pure=False)
            rows = [_marked(receive.file(place)) for place in range(len(ids))]
            places = {
                self.client.submit(
                    _trained,
                    self.data,
                    model,
                    client,
                    serialize(server.clients.get(client, {})),
                    rows[place],
                    key=(name, index, client),
                ): place
                for place, client in enumerate(ids.tolist())
            }
            for future in as_completed(list(places), loop=self.client.loop):
                place = places.pop(future)
                update, written = deserialize(future.result())
                row = rows[place]
                whole = replace(update, theta=row.file.read(row.row, start)) if row and written else update
                updates[place] = receive(place, whole, written=written)
        return [updates[place] for place in range(len(ids))]


@dataclass(frozen=True)
class _MarkedRow:
    """A row that begins with a mark, by which a worker knows that it sees the same file as the server."""

    file: RowFile
    row: int
    mark: Tensor

    def is_seen(self) -> bool:
        """Whether the row of the file by this name begins with the mark."""
        try:
            return torch.equal(self.file.read(self.row, self.mark), self.mark)
        except OSError:
            return False


def _marked(target: tuple[RowFile, int] | None) -> _MarkedRow | None:
    if target is None:
        return None
    file, row = target
    mark = torch.frombuffer(bytearray(secrets.token_bytes(min(16, file.width))), dtype=torch.uint8)
    file.write(row, mark)
    return _MarkedRow(replace(file, path=file.path.absolute()), row, mark)


@contextmanager
def cluster(setting: Setting, data: Data, folder: Path, address: str) -> Iterator[ClientCluster]:
    """The workers of a scheduler as the client pool of a run; the context releases their data.

    Raises:
        Lost: If no scheduler answers at the address.
        LookupError: If Dask is not installed.
    """
    with connected(address) as client:
        yield ClientCluster(setting, folder.name, client, WorkerData.of_run(setting, data, folder))


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A `distributed.Client` of a scheduler.

    Raises:
        Lost: If no scheduler answers at the address.
        LookupError: If Dask is not installed.
        ValueError: If the address is malformed.
    """
    try:
        import dask
        import distributed
    except ModuleNotFoundError as reason:
        raise LookupError("a cluster needs Dask; install it by pip install 'fedscape[cluster]'.") from reason
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # a model is meant to travel
        try:
            client = distributed.Client(address, timeout=PATIENCE, set_as_default=False, name="fedscape")
        except (OSError, TimeoutError) as reason:
            raise Lost(f"no Dask scheduler answers at {address}; start one, or give the address it prints.") from reason
        with quiet():
            try:
                yield client
            finally:
                client.close(timeout=1)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the logs of Dask and its event loop: a lost scheduler is reported in one line by its caller.

    Dask sets levels of single loggers below its own (`distributed.client`, ...), so each is silenced by itself. After
    an error they stay silent: threads of a lost connection end later than the context.
    """
    names = [name for name in [*logging.root.manager.loggerDict, *_LOGGERS] if name.partition(".")[0] in _LOGGERS]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


_LOGGERS = ("distributed", "tornado", "asyncio")


@contextmanager
def losing(client: Any) -> Iterator[None]:
    """Reports a lost scheduler, or a task that kills its workers, in one line."""
    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    try:
        yield
    except (CancelledError, CommClosedError, TimeoutError) as reason:
        raise Lost(f"the Dask scheduler is gone ({client.status}). {RESUME}") from reason
    except KilledWorker as reason:
        raise Crashed(f"{reason} Give workers more memory, or use a smaller batch. {RESUME}") from reason


@dataclass
class Serialized:
    """A serialised value that a worker deserialises once, for all tasks that read it.

    Args:
        made: Makes of it what `load` returns; None: the value itself.
    """

    text: bytes
    made: Callable[[Any], Any] | None = None

    def load(self) -> Any:
        """The value, the same object each time."""
        if "_value" not in self.__dict__:
            keep_memory()
            value = deserialize(self.text)
            self._value = value if self.made is None else self.made(value)
        return self._value

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text, "made": self.made}


TORCH_LOCK = threading.Lock()
"""A worker may have several threads; the workspace, and torch's global generator, are for one job at a time."""


def _begun(call: tuple[Callable[..., Any], tuple[Any, ...]]) -> Any:
    begin, arguments = call
    return begin(*arguments)


def _done(begun: Serialized, message: bytes) -> bytes:
    """On a worker: the serialised result of a job."""
    with TORCH_LOCK, torch_threads(1):
        work, job = deserialize(message)
        return serialize(work(begun.load(), job))


def _trained(data: Serialized, received: Serialized, client: int, state: bytes, row: _MarkedRow | None) -> bytes:
    """On a worker: a client's serialised update, and whether its model is in its row of a file instead."""
    with TORCH_LOCK:
        threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
        client_state: State = deserialize(state)
        try:
            update = data.load().trained(received.load(), client, client_state)
            start = received.load().start
        finally:
            torch.set_num_threads(threads)
            torch.use_deterministic_algorithms(deterministic)
    same = update.theta.shape == start.shape and update.theta.dtype == start.dtype
    if row is None or not same or not row.is_seen():
        return serialize((update, False))
    row.file.write(row.row, update.theta)
    return serialize((replace(update, theta=update.theta[:0]), True))
