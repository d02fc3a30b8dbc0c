"""The parts of a report that take time: computed and stored in the runs' folders before anything is drawn."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.cost import training_cost
from drift.analyses.rounds.early_warning import early_warning
from drift.analyses.rounds.norms_and_weights import locality
from drift.analyses.rounds.variance import drift_variances
from drift.parallel.worker_pool import Workers
from drift.runs.run import Run
from drift.runs.run import open as open_run
from figures.interactive.curves import DRIFTS, number
from figures.page.diagnosis import diagnosis
from figures.page.named_figures import compute_figures
from figures.page.pictures import jobs
from figures.page.remembered_runs import Job, JobProgress, Remembered, attempt
from figures.page.sampled import Samples
from figures.page.sent_scene import stage_jobs
from figures.page.start import Start
from figures.page.summary import last_eigenvalue, last_minimum

EIGENVALUE, MINIMUM, DRIFT, CURVES, FIGURES, DIAGNOSIS, COST = 0.6, 2.0, 0.2, 0.5, 3.0, 1.0, 0.5
"""Times of the parts of a run, relative to a plane of one round (measured on a run of a convolutional network)."""


def compute_jobs(
    grouped: Mapping[str, Sequence[Run]],
    start: Start,
    samples: Samples,
    progress: JobProgress,
    *,
    workers: int = 1,
    task: str | None = None,
) -> None:
    """Compute and store what the page shows; a part that fails is reported where its result is drawn.

    Args:
        grouped: Runs that differ in their seed only, by name; of the first of a group everything is shown.
        start, samples: Landscapes of the stage; samples of all other numbers at most.
        workers: Processes; each computes one part after the other on one thread.
        task: A task in place of the recorded one, FILE.py:FUNCTION, for workers; the runs given here have it already.
    """
    shown = [(run, run is group[0]) for group in grouped.values() for run in group]
    jobs = [jobs_of(run, start, samples, full=full) for run, full in shown]
    if workers == 1:
        for done, ((run, _), of_run) in enumerate(zip(shown, jobs, strict=True)):
            progress.run_jobs(run, done, of_run)
        return
    requests = [
        (run.folder, run.context.data, task, start, samples, full, index)
        for (run, full), of_run in zip(shown, jobs, strict=True)
        for index in range(len(of_run))
    ]
    owners = [(run, job, of_run) for (run, _), of_run in zip(shown, jobs, strict=True) for job in of_run]
    progress.begin()
    with Workers(min(workers, len(requests))) as pool:
        for result in pool.results(_compute, requests):
            progress.job_done(*owners[result.index], result.result)


def jobs_of(run: Run, start: Start, samples: Samples, *, full: bool = True) -> list[Job]:
    """The jobs of a run: with all its pictures, or only what the summary and the curves show of every run."""
    numbers = [Job("drift", DRIFT, _drift), Job("curves over rounds", CURVES, _series)]
    if not start.alone:
        numbers += [
            Job("Hessian eigenvalue", EIGENVALUE, partial(last_eigenvalue, samples=samples)),
            Job("centre of the basin", MINIMUM, partial(last_minimum, samples=samples)),
            Job("figures of the gallery", FIGURES, partial(compute_figures, samples=samples, full=full)),
        ]
    if not full:
        return numbers
    cost = [] if start.alone else [Job("cost of a client", COST, lambda run: run.cached(training_cost))]
    return [*numbers, Job("diagnosis", DIAGNOSIS, diagnosis), *cost, *jobs(run, samples), *stage_jobs(run, start)]


def _drift(run: Run) -> None:
    run.cached(coherence)
    run.cached(drift_variances)
    run.cached(early_warning, detectors="all")


def _series(run: Run) -> None:
    """Compute the results that the curves of a run show."""
    for name in (*DRIFTS, "gamma", "end_norm"):
        number(run, name)
    run.cached(locality)


Request = tuple[Path, Path | None, str | None, Start, Samples, bool, int]
"""A part to compute in another process: folders of run and datasets, task, start, samples, whole, its number."""


def _compute(state: None, request: Request) -> float | None:
    """Seconds of one part, None if it fails; in a worker."""
    folder, data, task, start, samples, full, index = request
    run = _opened(folder, data, task)
    return attempt(run, jobs_of(run, start, samples, full=full)[index])


@lru_cache(maxsize=1)
def _opened(folder: Path, data: Path | None, task: str | None) -> Run:
    return Remembered.wrap(open_run(folder, data=data, task=task))
