"""An analysis of many rounds or runs: each result is a task, of processes on this machine or of a Dask scheduler.

A task stores its result in the folder of its run (`Run.cached`), where every later call finds it. A worker that dies
is replaced, and another one repeats its task.
"""

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from drift.engines import job_pool
from drift.parallel.job_pool import JobResult
from drift.plugins import trust
from drift.runs.run import Run
from drift.runs.run import open as open_run
from drift.runs.user_task import UserMetric
from drift.store.memory_budget import limited
from landscape.plugins import outside


@dataclass(frozen=True)
class Opening:
    """How the runs of all tasks are opened; a worker opens each run once.

    Args:
        data: Folder of the datasets; None: as `landscape.datasets` finds them.
        task: FILE.py:FUNCTION of a task that replaces the recorded ones.
        metrics: FILE.py:FUNCTION of further metrics of planes and lines.
        memory: Budget for client models in each process, such as "2GB"; None: that of the environment.
        trusted: Code that runs may name, as `drift.plugins.trust.TRUSTED` lists it.
        call: Text that differs between two calls, so that a worker that lives on opens runs anew.
    """

    data: Path | None = None
    task: str | None = None
    metrics: tuple[str, ...] = ()
    memory: str | None = None
    trusted: str = field(default_factory=lambda: os.environ.get(trust.TRUSTED, ""))
    call: str = field(default_factory=lambda: secrets.token_hex(8))

    def absolute(self) -> Self:
        """The same with whole paths, as a worker of another folder needs them."""
        return replace(
            self,
            data=None if self.data is None else self.data.absolute(),
            task=None if self.task is None else outside.absolute_name(self.task),
            metrics=tuple(map(outside.absolute_name, self.metrics)),
        )


@dataclass(frozen=True)
class Wanted:
    """One result: the analysis, module:NAME or FILE.py:NAME, of the run in a folder, with these options."""

    folder: Path
    analysis: str
    options: dict[str, Any]


def compute_results(
    wanted: Sequence[Wanted],
    opening: Opening,
    *,
    workers: int = 1,
    cluster: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Exception | None]:
    """Compute and store results; the error of each, or None. An error stops no other result.

    Args:
        wanted: Results; those that are stored are not computed again.
        opening: How the runs are opened.
        workers: Processes on this machine, one result at a time each; 1: this process.
        cluster: Address of a Dask scheduler, whose workers take the results in place of these; they have to see the
            folders of runs and of datasets, and the user's own code, under the same paths.
        progress: Called with the number of finished results and of all, first with 0.

    Raises:
        Lost: If the scheduler cannot be reached or is gone.
    """
    errors: list[Exception | None] = [None] * len(wanted)
    folder = opening.absolute()
    jobs = [(folder, replace(result, folder=result.folder.absolute())) for result in wanted]
    report = progress or (lambda done, total: None)
    report(0, len(jobs))
    with ExitStack() as opened:
        if cluster is None and min(workers, len(jobs)) <= 1:
            ended: Iterator[JobResult] = (JobResult(index, error=_error(job)) for index, job in enumerate(jobs))
        else:
            pool = opened.enter_context(job_pool(max(1, min(workers, len(jobs))), cluster))
            ended = opened.enter_context(closing(pool.results(_computed, jobs)))
        for done, result in enumerate(ended, 1):
            errors[result.index] = result.error
            report(done, len(jobs))
    return errors


Job = tuple[Opening, Wanted]


def _error(job: Job) -> Exception | None:
    try:
        compute(job)
    except (ValueError, LookupError, TypeError, OSError, RuntimeError) as reason:
        return reason
    return None


def _computed(started: None, job: Job) -> None:
    """In another process, which may not have the environment of this one."""
    for name in filter(None, job[0].trusted.split(",")):
        trust.allow(name)
    compute(job)


def compute(job: Job) -> None:
    """Compute one result and store it in the folder of its run."""
    opening, wanted = job
    with limited(opening.memory):
        _opened(opening, wanted.folder).cached(outside.load(wanted.analysis), **wanted.options)


@lru_cache(maxsize=1)
def _opened(opening: Opening, folder: Path) -> Run:
    measures = [UserMetric.load(text) for text in opening.metrics]
    return open_run(folder, data=opening.data, task=opening.task).with_measures(measures)
