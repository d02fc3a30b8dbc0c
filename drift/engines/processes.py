"""The cohort's clients shared by processes of this machine, which hold data and model during the whole run.

The bits are those of `serial`: a client's training is a pure function of what it receives. The data lie once in memory,
the global model is written once per round and read by all, and client models are written where the server reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from drift.config.method_values import Setting, State
from drift.engines.pure import Received, WorkerData
from drift.parallel.shared_tensors import MemoryRegion, SharedValue, map_memory, share_memory
from drift.parallel.worker_pool import Workers
from drift.training.client import Update
from drift.training.data import Data
from drift.training.server import Server


class ClientProcesses:
    """A client pool (`drift.engines.ClientPool`) of processes, started by `processes`."""

    def __init__(self, setting: Setting, workers: Workers, idle: int) -> None:
        self.setting, self.workers, self.idle = setting, workers, idle

    def train(self, server: Server, start: Tensor, ids: np.ndarray) -> list[Update]:
        """Updates of the clients `ids` of the server's next round, in their order."""
        received, region = share_memory(Received.from_server(self.setting, server, start))
        size = len(ids) * start.nbytes
        with region, MemoryRegion(size) as rows:
            models = map_memory(rows.path, rows.size, writable=True)[:size].view(start.dtype).view(len(ids), -1)
            jobs = [
                _ClientJob(received, client, server.clients.get(client, {}), rows.path, rows.size, place)
                for place, client in enumerate(ids.tolist())
            ]
            updates = self.workers.in_order(_work, jobs)
        pairs = zip(updates, models, strict=True)
        return [replace(update, theta=model) if in_row else update for (update, in_row), model in pairs]


@contextmanager
def processes(setting: Setting, data: Data, folder: Path, workers: int) -> Iterator[ClientProcesses]:
    """Processes as the client pool of a run; they end with the context."""
    worker_data, region = share_memory(WorkerData.of_run(setting, data, folder))
    with region, Workers(workers, _start_worker, worker_data) as pool:
        yield ClientProcesses(setting, pool, workers)


@dataclass(frozen=True)
class _ClientJob:
    """A client of a round, and the row among `path`'s models that its own is written to."""

    received: SharedValue
    client: int
    state: State
    path: str
    size: int
    row: int


class _WorkerState:
    def __init__(self, data: WorkerData) -> None:
        self.data = data
        self.number, self.received = -1, cast(Received, None)

    def load(self, shared: SharedValue) -> Received:
        if shared.number != self.number:
            self.number, self.received = shared.number, shared.load()
        return self.received


def _start_worker(data: SharedValue) -> _WorkerState:
    return _WorkerState(data.load())


def _work(state: _WorkerState, job: _ClientJob) -> tuple[Update, bool]:
    """The update, with its model in the job's row; it stays in the update if it is of another shape or type."""
    received = state.load(job.received)
    update = state.data.trained(received, job.client, job.state)
    if update.theta.shape != received.start.shape or update.theta.dtype != received.start.dtype:
        return update, False
    size = received.start.nbytes
    row = map_memory(job.path, job.size, writable=True)[job.row * size : (job.row + 1) * size].view(
        received.start.dtype
    )
    row.copy_(update.theta)
    return replace(update, theta=torch.empty(0)), True
