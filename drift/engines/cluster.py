"""The workers of a Dask scheduler, on one machine or many, as processes that share jobs.

Bits are those of one process where machines and versions of torch are alike. What all jobs need goes to each worker
once. Jobs of a worker that dies are repeated by others.
"""

import itertools
import logging
import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from drift.parallel.job_pool import Crashed, JobPool, JobResult, JobWatch
from drift.parallel.shared_tensors import deserialize, serialize
from drift.parallel.threads import torch_threads

PATIENCE = 10.0
"""Seconds in which a scheduler has to answer."""

RESUME = "Whole rounds are kept; repeat the command, with a scheduler or without one: it resumes there."


class Lost(RuntimeError):
    """The scheduler cannot be reached any more, or never could."""


class ClusterWorkers(JobPool):
    """The workers of a Dask scheduler as processes that share jobs, made by `cluster_workers`.

    Each job takes one process, whatever its threads, and torch has one thread.
    """

    def __init__(self, client: Any, begin_call: bytes) -> None:
        self._client, self._calls = client, itertools.count()
        self._name = f"fedscape-{secrets.token_hex(8)}"
        self.number = max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
        self._begun = self._sent("begin", begin_call, _begun)

    def _sent(self, name: str, text: bytes, convert: Callable[[Any], Any] | None = None) -> Any:
        """A serialised value that each worker receives once, when a job of it needs it."""
        return self._client.submit(Serialized, text, convert, key=(self._name, name), pure=False)

    def results(
        self, work: Callable[..., Any], jobs: Sequence[Any], *, shared: Any = None, watch: JobWatch | None = None
    ) -> Generator[JobResult]:
        """Results of all jobs in the order in which they finish, as a `JobPool` returns them."""
        from distributed import KilledWorker, as_completed

        call = next(self._calls)
        with losing(self._client):
            value = None if shared is None else self._sent(f"shared {call}", serialize(shared))
            indices = {
                self._client.submit(
                    _done, self._begun, value, serialize((work, job)), key=(self._name, call, index), pure=False
                ): index
                for index, job in enumerate(jobs)
            }
            plain = as_completed(list(indices), loop=self._client.loop)
            for future in plain if watch is None else _watched(indices, watch):
                error = future.exception()
                if isinstance(error, KilledWorker):
                    error = Crashed(f"{error} Give workers more memory, or use a smaller batch. {RESUME}")
                result = None if error is not None else deserialize(future.result())
                yield JobResult(indices.pop(future), result, error)

    def memory(self, size: int) -> AbstractContextManager[None]:
        """None: workers may be on other machines."""
        return nullcontext()


def _watched(indices: dict[Any, int], watch: JobWatch) -> Iterator[Any]:
    """Futures as they end; `watch` is told the places of the others."""
    pending = dict(indices)
    while pending:
        watch.call(set(pending.values()))
        time.sleep(PATIENCE if watch.seconds is None else watch.seconds)
        for future in [future for future in pending if future.done()]:
            del pending[future]
            yield future


def cluster_workers(address: str, begin: Callable[..., Any], *arguments: Any) -> AbstractContextManager[ClusterWorkers]:
    """Context with the workers of a scheduler, each of which calls `begin(*arguments)` once.

    Raises:
        Lost: If no scheduler answers at the address.
        LookupError: If Dask is not installed.
    """
    return _connected_workers(address, serialize((begin, arguments)))


@contextmanager
def _connected_workers(address: str, begin_call: bytes) -> Iterator[ClusterWorkers]:
    with connected(address) as client:
        with losing(client):
            workers = ClusterWorkers(client, begin_call)
        yield workers


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
    """Reports a lost scheduler in one line."""
    from distributed.comm.core import CommClosedError

    try:
        yield
    except (CancelledError, CommClosedError, TimeoutError) as reason:
        raise Lost(f"the Dask scheduler has stopped ({client.status}). {RESUME}") from reason


@dataclass
class Serialized:
    """A serialised value that a worker deserialises once, for all tasks that read it.

    Args:
        convert: Makes of it what `load` returns; None: the value itself.
    """

    text: bytes
    convert: Callable[[Any], Any] | None = None

    def load(self) -> Any:
        """The value, the same object each time."""
        if "_value" not in self.__dict__:
            value = deserialize(self.text)
            self._value = value if self.convert is None else self.convert(value)
        return self._value

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text, "convert": self.convert}


TORCH_LOCK = threading.Lock()
"""A worker may have several threads; the workspace, and torch's global generator, are for one job at a time."""


def _begun(call: tuple[Callable[..., Any], tuple[Any, ...]]) -> Any:
    begin, arguments = call
    return begin(*arguments)


def _done(begun: Serialized, shared: Serialized | None, message: bytes) -> bytes:
    """On a worker: the serialised result of a job."""
    with TORCH_LOCK, torch_threads(1):
        deterministic = torch.are_deterministic_algorithms_enabled()
        try:
            work, job = deserialize(message)
            return serialize(work(begun.load(), *([] if shared is None else [shared.load()]), job))
        finally:
            torch.set_deterministic_debug_mode(2 if deterministic else 0)  # as `WorkerData.settle`
