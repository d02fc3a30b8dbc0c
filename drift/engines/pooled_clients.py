"""The cohort's clients shared by other processes, which hold data and model during the whole run.

The bits are those of `serial`: a client's training is a pure function of what it receives. The data reach each process
once, the global model once per round. A client's model is written where the server reads it, to its row of a file or of
memory, if the process sees that; else it is sent.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drift.config.method_values import Setting, State
from drift.engines import job_pool
from drift.engines.pure import Received, WorkerData
from drift.parallel.job_pool import JobPool
from drift.store.client_rows import RowFile
from drift.training.arrivals import Receive
from drift.training.client import Update
from drift.training.data import Data
from drift.training.server import Server


@dataclass
class PooledClients:
    """Processes with a run's data and model that train the clients of its rounds, made by `pooled_clients`.

    Args:
        setting: Constants of the run.
        pool: The processes.
        idle: Cores of this machine on which they wait while the server works.
    """

    setting: Setting
    pool: JobPool
    idle: int

    def train(self, server: Server, start: Tensor, ids: np.ndarray, receive: Receive) -> list[Update]:
        """Updates of the clients `ids` of the server's next round, in their order.

        They are taken one at a time, in the order in which they finish.

        Raises:
            Lost: If the scheduler of a cluster is gone.
            Crashed: If one client's training killed several workers.
            OSError: If the disk is full.
        """
        received = Received.from_server(self.setting, server, start)
        files, number = [receive.file(index) for index in range(len(ids))], count()
        updates = dict[int, Update]()
        with self.pool.memory(sum(file is None for file in files) * start.nbytes) as memory:
            rows = None if memory is None else RowFile(memory, 0, start.nbytes)
            targets = [file or (None if rows is None else (rows, next(number))) for file in files]
            jobs = _Jobs(ids.tolist(), server.clients, [_marked(target) for target in targets])
            for index, (update, in_row) in self.pool.as_completed(_trained, jobs, shared=received):
                row = jobs.rows[index]
                stored = replace(update, theta=row.file.read(row.row, start)) if row and in_row else update
                updates[index] = receive(index, stored, written=in_row and files[index] is not None)
        return [updates[index] for index in range(len(ids))]


@contextmanager
def pooled_clients(
    setting: Setting, data: Data, folder: Path, workers: int, cluster: str | None
) -> Iterator[PooledClients]:
    """Processes as the client pool of a run; they, or what they hold of it, end with the context.

    Raises:
        Lost: If no scheduler answers at the address of a cluster.
        LookupError: If Dask is not installed.
    """
    with job_pool(workers, cluster, _ready, WorkerData.of_run(setting, data, folder)) as pool:
        yield PooledClients(setting, pool, workers)


@dataclass(frozen=True)
class MarkedRow:
    """A row that begins with a mark, by which a process knows that it sees the same file as the server."""

    file: RowFile
    row: int
    mark: Tensor

    def is_seen(self) -> bool:
        """Whether the row of the file by this name begins with the mark."""
        try:
            return torch.equal(self.file.read(self.row, self.mark), self.mark)
        except OSError:
            return False


def _marked(target: tuple[RowFile, int] | None) -> MarkedRow | None:
    if target is None:
        return None
    file, row = target
    mark = torch.frombuffer(bytearray(secrets.token_bytes(min(16, file.width))), dtype=torch.uint8)
    file.write(row, mark)
    return MarkedRow(replace(file, path=file.path.absolute()), row, mark)


@dataclass(frozen=True)
class _Jobs(Sequence[Any]):
    """Client, what it keeps and its row, for each client of a round; what it keeps is read when its job is sent."""

    ids: list[int]
    states: Mapping[int, State]
    rows: list[MarkedRow | None]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: Any) -> Any:
        client = self.ids[index]
        return client, self.states.get(client, {}), self.rows[index]


def _ready(data: WorkerData) -> WorkerData:
    return data


def _trained(data: WorkerData, received: Received, job: tuple[int, State, MarkedRow | None]) -> tuple[Update, bool]:
    """In a worker: the update, and whether its model is in its row instead; one of another shape or type is not."""
    client, state, row = job
    update = data.trained(received, client, state)
    same = update.theta.shape == received.start.shape and update.theta.dtype == received.start.dtype
    if row is None or not same or not row.is_seen():
        return update, False
    row.file.write(row.row, update.theta)
    return replace(update, theta=update.theta[:0]), True
