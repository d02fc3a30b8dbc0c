"""The cohort's clients shared by processes of this machine, which hold data and model during the whole run.

The bits are those of `serial`: a client's training is a pure function of what it receives. The data lie once in memory,
the global model is written once per round and read by all, and client models are written where the server reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from drift.config.method_values import Setting, State
from drift.engines.pure import Received, WorkerData
from drift.parallel.shared_tensors import MemoryRegion, SharedValue, share_memory
from drift.parallel.worker_pool import Workers
from drift.store.client_rows import RowFile
from drift.training.arrivals import Receive
from drift.training.client import Update
from drift.training.data import Data
from drift.training.server import Server


class ClientProcesses:
    """A client pool (`drift.engines.ClientPool`) of processes, started by `processes`."""

    def __init__(self, setting: Setting, workers: Workers, idle: int) -> None:
        self.setting, self.workers, self.idle = setting, workers, idle

    def train(self, server: Server, start: Tensor, ids: np.ndarray, receive: Receive) -> list[Update]:
        """Updates of the clients `ids` of the server's next round, in their order.

        Models go to their rows in a file where `receive` has one, else to memory that all processes share.
        """
        received, region = share_memory(Received.from_server(self.setting, server, start))
        files = [receive.file(place) for place in range(len(ids))]
        number = count()
        with region, MemoryRegion(sum(file is None for file in files) * start.nbytes) as memory:
            rows = RowFile(Path(memory.path), 0, start.nbytes)
            targets = [file or (rows, next(number)) for file in files]
            jobs = _Jobs(received, ids.tolist(), server.clients, targets)
            updates = dict[int, Update]()
            for place, (update, in_row) in self.workers.as_completed(_work, jobs):
                file, row = targets[place]
                whole = replace(update, theta=file.read(row, start)) if in_row else update
                updates[place] = receive(place, whole, written=in_row and file is not rows)
        return [updates[place] for place in range(len(ids))]


@contextmanager
def processes(setting: Setting, data: Data, folder: Path, workers: int) -> Iterator[ClientProcesses]:
    """Processes as the client pool of a run; they end with the context."""
    worker_data, region = share_memory(WorkerData.of_run(setting, data, folder))
    with region, Workers(workers, _start_worker, worker_data) as pool:
        yield ClientProcesses(setting, pool, workers)


@dataclass(frozen=True)
class _ClientJob:
    """A client of a round, and the row of a file that its model is written to."""

    received: SharedValue
    client: int
    state: State
    file: RowFile
    row: int


@dataclass(frozen=True)
class _Jobs(Sequence[Any]):
    """The jobs of a round; what a client keeps is read when its job is sent."""

    received: SharedValue
    ids: list[int]
    states: Mapping[int, State]
    targets: list[tuple[RowFile, int]]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, place: Any) -> Any:
        client = self.ids[place]
        return _ClientJob(self.received, client, self.states.get(client, {}), *self.targets[place])


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
    job.file.write(job.row, update.theta)
    return replace(update, theta=torch.empty(0)), True
