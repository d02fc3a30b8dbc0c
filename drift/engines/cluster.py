"""The cohort's clients shared by the workers of a Dask scheduler, on one machine or many.

The bits are those of `serial` where machines and versions of torch are alike. The data go to every worker once per run
(also to workers that start later), the global model once per round; a client's training is a pure task keyed by (run,
round, client). Tasks of a worker that dies are repeated by others. If the scheduler is lost, the run
stops with its last whole round.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drift.config.method_values import Setting, State
from drift.engines.pure import Received, WorkerData
from drift.parallel.shared_tensors import deserialize, serialize
from drift.parallel.worker_pool import Crashed
from drift.training.arrivals import Receive
from drift.training.client import Update
from drift.training.data import Data
from drift.training.server import Server

PATIENCE = 10.0
"""Seconds in which a scheduler has to answer."""

RESUME = "Whole rounds are kept; give the same command again, with a scheduler or without one: it goes on from there."


class Lost(RuntimeError):
    """The scheduler cannot be reached any more, or never could."""


class ClientCluster:
    """A client pool (`drift.engines.ClientPool`) of Dask workers, started by `cluster`."""

    idle = 1  # they may be on other machines

    def __init__(self, setting: Setting, run: str, client: Any) -> None:
        self.setting, self.run, self.client = setting, run, client

    def train(self, server: Server, start: Tensor, ids: np.ndarray, receive: Receive) -> list[Update]:
        """Updates of the clients `ids` of the server's next round, in their order.

        `receive` takes them when all are back.

        Raises:
            Lost: If the scheduler is gone.
            Crashed: If one client's training killed several workers.
        """
        name, index = f"{self.run}-{os.getpid()}", server.next
        received = serialize(Received.from_server(self.setting, server, start))
        with losing(self.client):
            model = self.client.submit(Serialized, received, key=(name, index, "model"), pure=False)
            futures = [
                self.client.submit(
                    _trained,
                    self.run,
                    model,
                    client,
                    serialize(server.clients.get(client, {})),
                    key=(name, index, client),
                )
                for client in ids.tolist()
            ]
            return [receive(place, deserialize(text)) for place, text in enumerate(self.client.gather(futures))]


@contextmanager
def cluster(setting: Setting, data: Data, folder: Path, address: str) -> Iterator[ClientCluster]:
    """The workers of a scheduler as the client pool of a run; the context releases their data.

    Raises:
        Lost: If no scheduler answers at the address.
        LookupError: If Dask is not installed.
    """
    with connected(address) as client:
        from drift.engines.worker_plugin import WorkerDataPlugin

        plugin = WorkerDataPlugin(folder.name, serialize(WorkerData.of_run(setting, data, folder)))
        with losing(client):
            client.register_plugin(plugin, name=folder.name)
        try:
            yield ClientCluster(setting, folder.name, client)
        finally:
            if client.status == "running":
                client.unregister_worker_plugin(folder.name)


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
    """A serialised value that a worker deserialises once, for all tasks that read it."""

    text: bytes

    def load(self) -> Any:
        """The value, the same object each time."""
        if "_value" not in self.__dict__:
            self._value = deserialize(self.text)
        return self._value

    def __getstate__(self) -> dict[str, bytes]:
        return {"text": self.text}


WORKER_DATA: dict[str, Serialized] = {}
"""On a worker: data per run (written by `drift.engines.worker_plugin`)."""

TORCH_LOCK = threading.Lock()
"""A worker may have several threads; the workspace, and torch's global generator, are for one training at a time."""


def _trained(run: str, received: Serialized, client: int, state: bytes) -> bytes:
    """On a worker: a client's serialised update."""
    with TORCH_LOCK:
        threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
        client_state: State = deserialize(state)
        try:
            return serialize(WORKER_DATA[run].load().trained(received.load(), client, client_state))
        finally:
            torch.set_num_threads(threads)
            torch.use_deterministic_algorithms(deterministic)
