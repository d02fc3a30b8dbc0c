"""The cohort's clients shared by processes of this machine, which hold data and model during the whole run.

The bits are those of `serial`: a client's training is a pure function of what it receives. The data lie once in memory,
the global model is written once a round and read by all, and client models are written where the server reads them.
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

from drift.config.method import Setting, State
from drift.engines.pure import Holding, Received
from drift.parallel.shared_tensors import MemoryRegion, SharedValue, map_memory, share_memory
from drift.parallel.worker_pool import Workers
from drift.training.client import Update
from drift.training.data import Data
from drift.training.server import Server


class Processes:
    """A crew (`drift.engines.Crew`) of processes; made by `processes`."""

    def __init__(self, setting: Setting, workers: Workers, idle: int) -> None:
        self.setting, self.workers, self.idle = setting, workers, idle

    def train(self, server: Server, start: Tensor, ids: np.ndarray) -> list[Update]:
        """Updates of the clients `ids` of the server's next round, in their order."""
        received, region = share_memory(Received.of(self.setting, server, start))
        size = len(ids) * start.nbytes
        with region, MemoryRegion(size) as rows:
            models = map_memory(rows.path, rows.size, writable=True)[:size].view(start.dtype).view(len(ids), -1)
            jobs = [
                _Job(received, client, server.clients.get(client, {}), rows.path, rows.size, place)
                for place, client in enumerate(ids.tolist())
            ]
            found: list[Update | None] = [None] * len(jobs)
            for ended in self.workers.results(_work, jobs):
                if ended.error is not None:
                    raise ended.error
                update, in_row = ended.result
                found[ended.place] = replace(update, theta=models[ended.place]) if in_row else update
        return cast(list[Update], found)


@contextmanager
def processes(setting: Setting, data: Data, folder: Path, workers: int) -> Iterator[Processes]:
    """A crew of so many processes for a run; they end with the context."""
    holding, region = share_memory(Holding.of(setting, data, folder))
    with region, Workers(workers, _begin, holding) as staff:
        yield Processes(setting, staff, workers)


@dataclass(frozen=True)
class _Job:
    """A client of a round, and the row among `path`'s models that its own is written to."""

    received: SharedValue
    client: int
    state: State
    path: str
    size: int
    row: int


class _Begun:
    """What a worker holds, and what it opened last."""

    def __init__(self, holding: Holding) -> None:
        self.holding = holding
        self.number, self.received = -1, cast(Received, None)

    def opened(self, shared: SharedValue) -> Received:
        if shared.number != self.number:
            self.number, self.received = shared.number, shared.load()
        return self.received


def _begin(holding: SharedValue) -> _Begun:
    return _Begun(holding.load())


def _work(begun: _Begun, job: _Job) -> tuple[Update, bool]:
    """The update, with its model in the job's row; it stays in the update if it is of another shape or type."""
    received = begun.opened(job.received)
    update = begun.holding.trained(received, job.client, job.state)
    if update.theta.shape != received.start.shape or update.theta.dtype != received.start.dtype:
        return update, False
    size = received.start.nbytes
    row = map_memory(job.path, job.size, writable=True)[job.row * size : (job.row + 1) * size].view(
        received.start.dtype
    )
    row.copy_(update.theta)
    return replace(update, theta=torch.empty(0)), True
