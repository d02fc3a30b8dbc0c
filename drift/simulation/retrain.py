"""Retraining of single clients of recorded rounds."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from torch import Tensor

from drift.parallel.worker_pool import Workers
from drift.runs.context import Context
from drift.runs.run import Run
from landscape.results.progress import Progress, with_progress

Item = TypeVar("Item")
Result = TypeVar("Result")

Job = tuple[int, int, int]
"""(round, client, replicate)."""


def replayed(
    run: Run, jobs: Sequence[Job], *, workers: int = 1, progress: Progress | None = None
) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:
    """Place, model (d,) and buffers (b,) of each local training when it is finished.

    Any client may be trained in any round that kept its start, drawn into the cohort or not. Replicate 0 repeats the
    recorded training bit for bit (for methods without state on clients); others draw fresh batches. One process or
    several give the same bits.

    Args:
        workers: Processes that share the trainings; each holds the dataset and one model.
        progress: Called with the number of trainings done and in all.

    Raises:
        LookupError: If a round kept no start.
    """
    return _completed(run, _train, jobs, workers, progress)


def share_jobs(
    run: Run, work: Callable[[Run, Item], Result], jobs: Sequence[Item], *, workers: int, progress: Progress | None
) -> list[Result]:
    """Results of `work(run, job)` in the order of the jobs, computed here or in several processes, with the same bits.

    Args:
        work: Function of a module.
        workers: Number of processes; each opens the run once.
        progress: Called with the number of jobs done and in all.
    """
    results = dict(_completed(run, work, jobs, workers, progress))
    return [results[index] for index in range(len(jobs))]


def _completed(
    run: Run, work: Callable[[Run, Item], Result], jobs: Sequence[Item], workers: int, progress: Progress | None
) -> Iterator[tuple[int, Result]]:
    """Place and result of each job when it is finished."""
    if workers == 1 or (len(jobs) < 2 and workers > 0):
        for index, job in enumerate(with_progress(jobs, progress)):
            yield index, work(run, job)
        return
    with Workers(min(workers, len(jobs)), _open_run, run.folder, run.context.data) as pool:
        yield from pool.as_completed(work, jobs, progress=progress)


def _train(run: Run, job: Job) -> tuple[Tensor, Tensor]:
    index, client, replicate = job
    ready = run.client(index, client, replicate=replicate)
    update = ready.sent(run.method.local(ready))
    return update.theta, update.buffers


def _open_run(folder: Path, data: Path | None) -> Run:
    return Run(folder, Context(data))
