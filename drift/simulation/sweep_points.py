"""Evaluation of a sweep's points in other processes: new ones on this machine, or the workers of a Dask scheduler.

A chunk of points is a pure task: if a worker is killed, another one repeats its chunk. Values
have the bits that one process on one thread gives where machines and versions of torch are alike.
"""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass

from drift.engines import job_pool, require_one_pool
from landscape.sweep.threads import PointPool, at_points, pieces
from landscape.sweep.worker import Points, Values, Work, Worker


@dataclass(frozen=True)
class PointWorkers:
    """A pool (`landscape.sweep.threads.PointPool`) of processes with one torch thread each, here or of a cluster."""

    number: int
    cluster: str | None = None

    def evaluate_points(self, work: Work, points: Points, most: int) -> Iterator[tuple[slice, Values]]:
        """Chunks of at most `most` points as they end, each with its values.

        Raises:
            Lost: If the scheduler does not answer, or is gone.
            ValueError: If other processes cannot import the code of the work.
        """
        number = min(self.number, len(points))
        try:
            opened = job_pool(number, self.cluster, Worker, work)
        except (pickle.PicklingError, AttributeError, TypeError) as reason:
            raise ValueError(
                f"this task cannot be sent to other processes ({reason}); put its model, loss and metrics into a "
                "module that can be imported, or leave --workers and --cluster out."
            ) from reason
        with opened as pool:
            blocks = pieces(len(points), most, pool.number)
            for index, values in pool.as_completed(at_points, [points[block] for block in blocks]):
                yield blocks[index], values


def point_pool(workers: int = 1, cluster: str | None = None) -> PointPool | None:
    """The pool that shares the points of a sweep; None if this process evaluates them all.

    Raises:
        ValueError: If both are given, or workers is not positive.
    """
    require_one_pool(workers, cluster)
    return PointWorkers(workers, cluster) if cluster is not None or workers > 1 else None
