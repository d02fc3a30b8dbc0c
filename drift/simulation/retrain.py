"""Retraining of single clients of recorded rounds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path

import torch
from torch import Tensor

from drift.parallel.process_pool import processes
from drift.runs.context import Context
from drift.runs.run import Run
from landscape.results.progress import Progress

Job = tuple[int, int, int]
"""(round, client, replicate)."""


def replay(
    run: Run, jobs: Sequence[Job], *, workers: int = 1, progress: Progress | None = None
) -> tuple[Tensor, Tensor]:
    """Models (J, d) and floating buffers (J, b) of J local trainings, in the order of the jobs.

    Any client may be trained in any round that kept its start, drawn into the cohort or not. Replicate 0 repeats the
    recorded training bit for bit (for methods without state on clients); others draw fresh batches. One process or
    several give the same bits.

    Args:
        workers: Processes that share the trainings; each holds the dataset and one model.
        progress: Called with the number of trainings done and in all.

    Raises:
        LookupError: If a round kept no start.
        ValueError: If there is no job, or no worker.
    """
    if not jobs or workers < 1:
        raise ValueError(f"{len(jobs)} trainings by {workers} processes were asked for; give one or more of each.")
    report = progress or (lambda done, total: None)
    report(0, len(jobs))
    models: list[tuple[Tensor, Tensor]] = []
    if workers == 1:
        for job in jobs:
            models.append(_train(run, job))
            report(len(models), len(jobs))
    else:
        with processes(min(workers, len(jobs))) as pool:
            for model in pool.map(partial(_train_in_worker, run.folder, run.context.data), jobs):
                models.append(model)
                report(len(models), len(jobs))
    return torch.stack([theta for theta, _ in models]), torch.stack([buffers for _, buffers in models])


def _train(run: Run, job: Job) -> tuple[Tensor, Tensor]:
    index, client, replicate = job
    update = run.method.local(run.client(index, client, replicate=replicate))
    return update.theta, update.buffers


@lru_cache(maxsize=1)
def _open_run(folder: Path, data: Path | None) -> Run:
    return Run(folder, Context(data))


def _train_in_worker(folder: Path, data: Path | None, job: Job) -> tuple[Tensor, Tensor]:
    return _train(_open_run(folder, data), job)
