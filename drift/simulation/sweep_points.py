"""Evaluation of a sweep's points in other processes: new ones on this machine, or the workers of a Dask scheduler.

A chunk of points is a pure task: if a worker is killed, another one repeats its chunk. Values
have the bits that one process on one thread gives where machines and versions of torch are alike.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

import torch
from torch import Tensor

from drift.engines.cluster import TORCH_LOCK, Serialized, connected, losing
from drift.parallel.shared_tensors import SharedValue, deserialize, serialize, share_memory
from drift.parallel.threads import torch_threads
from drift.parallel.worker_pool import Workers
from landscape.sweep.threads import PointPool, at_points, pieces
from landscape.sweep.worker import Points, Values, Work, Worker

_NUMBERS = count()

Sent = TypeVar("Sent")


@dataclass(frozen=True)
class PointProcesses:
    """A pool (`landscape.sweep.threads.PointPool`) of processes on this machine, with one torch thread each."""

    number: int

    def evaluate_points(self, work: Work, points: Points, most: int) -> Iterator[tuple[slice, Values]]:
        """Chunks of at most `most` points as they end, each with its values."""
        parts = pieces(len(points), most, self.number)
        shared, region = _send(share_memory, work)
        with region, Workers(min(self.number, len(parts)), _start_worker, shared) as pool:
            for result in pool.results(at_points, [points[part] for part in parts]):
                if result.error is not None:
                    raise result.error
                yield parts[result.place], result.result


@dataclass(frozen=True)
class PointCluster:
    """A pool (`landscape.sweep.threads.PointPool`) of the workers of the Dask scheduler at an address."""

    address: str

    def evaluate_points(self, work: Work, points: Points, most: int) -> Iterator[tuple[slice, Values]]:
        """Chunks of at most `most` points as they end, each with its values.

        Raises:
            Lost: If the scheduler does not answer, or is gone.
        """
        with connected(self.address) as client, losing(client):
            from distributed import as_completed

            name = f"sweep-{os.getpid()}-{next(_NUMBERS)}"
            parts = pieces(len(points), most, max(1, len(client.scheduler_info(n_workers=-1)["workers"])))
            shared = client.submit(Serialized, _send(serialize, work), key=(name, "work"), pure=False)
            tasks = {
                client.submit(_remote, shared, points[part], key=(name, place)): part
                for place, part in enumerate(parts)
            }
            for task in as_completed(list(tasks), loop=client.loop):
                yield tasks[task], deserialize(task.result())


def point_pool(workers: int = 1, cluster: str | None = None) -> PointPool | None:
    """The pool that shares the points of a sweep; None if this process evaluates them all.

    Raises:
        ValueError: If both are given, or workers is not positive.
    """
    if workers < 1 or (workers > 1 and cluster is not None):
        raise ValueError(f"workers is {workers}, cluster {cluster}; give 1 or more workers, or a cluster, not both.")
    if cluster is not None:
        return PointCluster(cluster)
    return PointProcesses(workers) if workers > 1 else None


def _send(send: Callable[[Work], Sent], work: Work) -> Sent:
    """Serialise a work with `send`; ValueError if other processes cannot import its code."""
    try:
        return send(work)
    except (pickle.PicklingError, AttributeError, TypeError) as reason:
        raise ValueError(
            f"this task cannot be sent to other processes ({reason}); put its model, loss and metrics into a module "
            "that can be imported, or leave --workers and --cluster out."
        ) from reason


def _start_worker(shared: SharedValue) -> Worker:
    torch.set_num_threads(1)
    return Worker(shared.load())


def _remote(work: Serialized, points: Points) -> bytes:
    """On a worker of a cluster: the serialised values of a chunk; the model is built once for all chunks."""
    with TORCH_LOCK, torch_threads(1):
        if "_worker" not in work.__dict__:
            work.__dict__["_worker"] = Worker(work.load())
        values: dict[str, Tensor] = at_points(work.__dict__["_worker"], points)
        return serialize(values)
