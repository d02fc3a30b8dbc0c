"""Runs as the report reads them: every result once, with progress."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from drift.runs.run import Run
from landscape.results.progress import Progress

PageProgress = Callable[[float, str], None]
"""(runs done, with the fraction of the present one; name of the present work) -> None."""


class Job(NamedTuple):
    """A part of the report: its name, its time relative to other jobs, and the function of a run that computes it."""

    name: str
    weight: float
    compute: Callable[[Run], object]


@dataclass(frozen=True)
class Remembered(Run):
    """A run that reads its rounds, numbers and results from its folder only once.

    A report needs the same ones many times; and if the run is trained further meanwhile, the whole report is about the
    rounds that existed when it began.
    """

    memory: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def wrap(cls, run: Run, progress: Progress | None = None) -> Remembered:
        """The run, whose analyses report to `progress`, with what it remembers already."""
        return cls(run.folder, replace(run.context, progress=progress), getattr(run, "memory", {}))

    def rounds(self) -> list[int]:
        """As `Run.rounds`."""
        return list(self.once("rounds", super().rounds))

    def metrics(self) -> xr.Dataset:
        """As `Run.metrics`."""
        return self.once("metrics", super().metrics)

    def cached(self, analysis: Callable[..., xr.Dataset], **arguments: Any) -> xr.Dataset:
        """As `Run.cached`."""
        key = f"{analysis.__module__}.{analysis.__qualname__} {json.dumps(arguments, sort_keys=True, default=str)}"
        compute = super().cached
        return self.once(key, lambda: compute(analysis, **arguments))

    def once(self, key: str, make: Callable[[], Any]) -> Any:
        """What `make` returned when it was called for this key."""
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]


class Failed:
    """Pictures and tables that could not be drawn, with the reason; the page is written without them.

    Args:
        left_out: A line on each run that was left out before; the page states it.
    """

    def __init__(self, left_out: Sequence[str] = ()) -> None:
        self.reasons: dict[str, str] = {}
        self.left_out = left_out

    def add(self, name: str, reason: BaseException) -> str:
        """Store the reason by name, and return it as a sentence."""
        self.reasons[name] = f"could not be drawn: {' '.join(str(reason).split()) or type(reason).__name__}"
        return self.reasons[name]


class JobProgress:
    """Runs the jobs of a report, and reports how many runs are done, with the fraction of the present one.

    Every finished job is a line of text for the run's `announce`.
    """

    def __init__(self, progress: PageProgress) -> None:
        self._progress = progress
        self._reached = self._end = 0.0
        self._counts = Counter[Path]()

    def run_jobs(self, run: Run, done: int, jobs: Sequence[Job]) -> None:
        """Compute the jobs of a run, after `done` runs; one that fails is reported where its result is drawn."""
        total, begun = sum(job.weight for job in jobs), 0.0
        self._progress(done, run.name)
        for number, job in enumerate(jobs, 1):
            self._reached = done + begun / total
            begun += job.weight
            self._end = done + begun / total
            seconds = attempt(run, job)
            self._reached = self._end
            self._progress(self._end, run.name)
            tell(run, job, f"{number} of {len(jobs)}", seconds)

    def job_done(self, run: Run, job: Job, jobs: Sequence[Job], seconds: float | None) -> None:
        """Count a job, of these of its run, that another process has computed."""
        self._counts[run.folder] += 1
        share = job.weight / sum(other.weight for other in jobs)
        self._reached = self._end = round(self._reached + share, 9)
        self._progress(self._reached, run.name)
        tell(run, job, f"{self._counts[run.folder]} of {len(jobs)}", seconds)

    def begin(self) -> None:
        """Report that nothing is done yet."""
        self._progress(0, "")

    def of_analysis(self, steps: int, total: int) -> None:
        """Progress of one analysis; a job may have several, so each takes half of what is left of the job."""
        reached = self._reached + 0.5 * (self._end - self._reached) * steps / max(total, 1)
        self._progress(reached, f"{steps} of {total}")
        self._reached = reached if steps == total else self._reached


def attempt(run: Run, job: Job) -> float | None:
    """Seconds of a job; None if it fails, which is reported where its result is drawn."""
    begun = time.monotonic()
    with suppress(Exception):
        job.compute(run)
        return time.monotonic() - begun
    return None


def tell(run: Run, job: Job, stage: str, seconds: float | None) -> None:
    """Announce a finished job of a run, with its place among the run's jobs."""
    if run.context.announce is not None:
        took = "left out" if seconds is None else f"{seconds:.1f} s"
        run.context.announce(f"{run.name}: {job.name} (part {stage}, {took})")
