"""Engines: where and how the local trainings of a cohort run; results differ by rounding only.

serial    one client after the other in this process; the reference, bit for bit reproducible
batched   the clients as rows of one computation; equal to serial but for rounding

The following change only the place. Bits are those of serial, and the choice is not part of a run's identity:

pooled_clients   the clients shared by processes of this machine (`simulate(..., workers=2)`) or by the workers of a
                 Dask scheduler (`simulate(..., cluster="tcp://host:8786")`)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.config.method import Method
from drift.config.method_values import Setting
from drift.parallel.job_pool import JobPool, no_state, require_workers
from drift.parallel.worker_pool import Workers
from drift.training.arrivals import as_they_are
from drift.training.client import Client, Update

if TYPE_CHECKING:
    from drift.engines.pooled_clients import PooledClients
    from drift.training.data import Data

NAMES = ("serial", "batched")


@dataclass(frozen=True)
class CohortUpdates:
    """A cohort's updates in the order of its clients.

    Args:
        updates: One per client.
        useful: Share of the computed samples that was no padding, 0-1; None where nothing is padded.
    """

    updates: list[Update]
    useful: float | None = None


def train(
    engine: str, method: Method, clients: Iterable[Client], receive: Callable[[int, Update], Update] = as_they_are
) -> CohortUpdates:
    """Local training of each client by the engine called `engine`.

    Args:
        receive: Takes the update of the client at a place when it comes back, and returns what is kept of it.

    Raises:
        ValueError: If there is no such engine.
    """
    if engine == "serial":
        from drift.engines import serial

        return CohortUpdates(serial.train(method, clients, receive))
    if engine == "batched":
        from drift.engines import batched

        return CohortUpdates(*batched.train(method, clients, receive))
    raise ValueError(f"no engine named {engine!r}; known: {', '.join(NAMES)}.")


def client_pool(
    setting: Setting, data: Data, folder: Path, *, workers: int = 1, cluster: str | None = None
) -> AbstractContextManager[PooledClients | None]:
    """Context with the client pool of a run; None if this process trains the clients itself.

    Args:
        folder: The run's folder.
        workers: Processes on this machine.
        cluster: Address of a Dask scheduler.

    Raises:
        ValueError: If both are given, or workers is not positive.
    """
    require_one_pool(workers, cluster)
    if setting.engine != "serial" and (workers > 1 or cluster is not None):
        warnings.warn(
            f"the engine {setting.engine} trains a cohort in one process; other processes have nothing to do. For "
            "those, set engine=serial (another run).",
            stacklevel=2,
        )
    elif cluster is not None or workers > 1:
        from drift.engines.pooled_clients import pooled_clients

        return pooled_clients(setting, data, folder, workers, cluster)
    return nullcontext()


def job_pool(
    workers: int, cluster: str | None, begin: Callable[..., Any] = no_state, *arguments: Any
) -> AbstractContextManager[JobPool]:
    """Context with other processes that each call `begin(*arguments)` once and share jobs.

    Args:
        workers: Fresh processes on this machine.
        cluster: Address of a Dask scheduler, whose workers take the jobs in place of these.

    Raises:
        Lost: If no scheduler answers at the address, or it is gone.
        ValueError: If both are given, or workers is not positive.
    """
    require_one_pool(workers, cluster)
    if cluster is None:
        return Workers(workers, begin, *arguments)
    from drift.engines.cluster import cluster_workers

    return cluster_workers(cluster, begin, *arguments)


def require_one_pool(workers: int, cluster: str | None) -> None:
    """Raise ValueError if both processes and a cluster are asked for, or too few or many processes."""
    require_workers(max(workers, 1))
    if workers < 1 or (workers > 1 and cluster is not None):
        raise ValueError(f"workers is {workers}, cluster {cluster}; give 1 or more workers, or a cluster, not both.")
