"""`JobPool`: other processes that share jobs, and the results of jobs."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from landscape.plugins.option_types import is_integer


class Crashed(RuntimeError):
    """A job whose workers died at every attempt."""


def require_workers(number: Any, name: str = "workers") -> None:
    """Raise ValueError for what is not a number of processes or threads, 1 to A_CORE for each core of this machine."""
    most = A_CORE * (os.cpu_count() or 1)
    if not (is_integer(number) and 1 <= number <= most):
        raise ValueError(f"{name} is {number!r}; give 1 or more, and at most {most} ({A_CORE} for each core).")


A_CORE = 16
"""Processes or threads for one core; more only take memory and time from each other."""


@dataclass(frozen=True)
class JobResult:
    """A finished job: its place among the jobs, and its result, or the error that it raised."""

    index: int
    result: Any = None
    error: Exception | None = None


class JobWatch(NamedTuple):
    """What is told which jobs run.

    Args:
        call: Called with the places of the running jobs; on a cluster with those of all that have not ended.
        seconds: Longest time between two calls; None: calls only when jobs start.
    """

    call: Callable[[set[int]], None]
    seconds: float | None = None


class JobPool(ABC):
    """Other processes that share jobs: `Workers` of this machine, or those of a cluster (`drift.engines.cluster`).

    A job is the call `work(state, job)`, or `work(state, shared, job)` with a value that all jobs of a call share.
    `state` is what `begin(*arguments)` returned in this worker. A job has to be pure: when its worker dies (`kill -9`,
    out of memory), another one repeats it. Arguments of `begin` and shared values reach each worker once.

    Attributes:
        number: Workers when the pool was made, at least 1.
    """

    number: int

    @abstractmethod
    def results(
        self, work: Callable[..., Any], jobs: Sequence[Any], *, shared: Any = None, watch: JobWatch | None = None
    ) -> Generator[JobResult]:
        """Results of all jobs in the order in which they finish; running jobs are stopped where it is left.

        Args:
            shared: A value for all jobs; None: there is none.
            watch: What is told which jobs run.

        Raises:
            Crashed: As the error of a job that killed several workers; the other jobs continue.
        """

    @abstractmethod
    def memory(self, size: int) -> AbstractContextManager[Path | None]:
        """Context with the path of `size` bytes that all workers may write to; None where there is no such memory."""

    def as_completed(
        self,
        work: Callable[..., Any],
        jobs: Sequence[Any],
        *,
        shared: Any = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Place and result of each job in the order in which they finish; the first error is raised.

        Args:
            shared: A value for all jobs; None: there is none.
            progress: Called with the number of finished jobs and of all, first with 0.
        """
        report = progress or (lambda done, total: None)
        report(0, len(jobs))
        for done, finished in enumerate(self.results(work, jobs, shared=shared), 1):
            if finished.error is not None:
                raise finished.error
            yield finished.index, finished.result
            report(done, len(jobs))


def no_state() -> None:
    """What workers begin with whose jobs share nothing."""
