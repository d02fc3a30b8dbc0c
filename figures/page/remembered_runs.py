"""Runs as the report reads them: every result once, with progress."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import xarray as xr

from drift.runs.run import Run
from landscape.results.progress import Progress

PageProgress = Callable[[float, str], None]
"""(runs done, with the fraction of the present one; name of the present work) -> None."""

Job = tuple[float, Callable[[Run], object]]
"""(its time relative to other jobs, function of a run that computes it)."""


@dataclass(frozen=True)
class Remembered(Run):
    """A run that reads its rounds, numbers and results from its folder only once.

    A report needs the same ones many times; and if the run is trained further meanwhile, the whole report is about the
    rounds that existed when it began.
    """

    memory: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def wrap(cls, run: Run, progress: Progress | None = None) -> Remembered:
        """The run, whose analyses report to `progress`."""
        return cls(run.folder, replace(run.context, progress=progress))

    def rounds(self) -> list[int]:
        """As `Run.rounds`."""
        return list(self._once("rounds", super().rounds))

    def metrics(self) -> xr.Dataset:
        """As `Run.metrics`."""
        result: xr.Dataset = self._once("metrics", super().metrics)
        return result

    def cached(self, analysis: Callable[..., xr.Dataset], **arguments: Any) -> xr.Dataset:
        """As `Run.cached`."""
        key = f"{analysis.__module__}.{analysis.__qualname__} {json.dumps(arguments, sort_keys=True, default=str)}"
        compute = super().cached
        result: xr.Dataset = self._once(key, lambda: compute(analysis, **arguments))
        return result

    def _once(self, key: str, make: Callable[[], Any]) -> Any:
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]


class Failed:
    """Pictures and tables that could not be drawn, with the reason; the page is written without them."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}

    def add(self, name: str, reason: BaseException) -> str:
        """Store the reason by name, and return it as a sentence."""
        self.reasons[name] = f"could not be drawn: {' '.join(str(reason).split()) or type(reason).__name__}"
        return self.reasons[name]


class JobProgress:
    """Runs the jobs of a report, and reports how many runs are done, with the fraction of the present one."""

    def __init__(self, progress: PageProgress) -> None:
        self._progress = progress
        self._reached = self._end = 0.0

    def run_jobs(self, run: Run, done: int, jobs: Sequence[Job]) -> None:
        """Compute the jobs of a run, after `done` runs; one that fails is reported where its result is drawn."""
        whole, begun = sum(weight for weight, _ in jobs), 0.0
        self._progress(done, run.name)
        for weight, job in jobs:
            self._reached = done + begun / whole
            begun += weight
            self._end = done + begun / whole
            with suppress(Exception):
                job(run)
            self._reached = self._end
            self._progress(self._end, run.name)

    def of_analysis(self, steps: int, total: int) -> None:
        """Progress of one analysis; a job may have several, so each takes half of what is left of the job."""
        reached = self._reached + 0.5 * (self._end - self._reached) * steps / max(total, 1)
        self._progress(reached, f"{steps} of {total}")
        self._reached = reached if steps == total else self._reached
