"""Runs as the report reads them: every result once, telling how far the work is."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import xarray as xr

from drift.runs.run import Run
from landscape.results.progress import Progress

Told = Callable[[float, str], None]
"""(runs done, with the fraction of the one at work; what is done now) -> None."""

Job = tuple[float, Callable[[Run], object]]
"""(how long it takes, beside the others; what is computed of a run)."""


@dataclass(frozen=True)
class Remembered(Run):
    """A run whose rounds are listed, and whose results and numbers are read from its folder, only once.

    A report asks for the same ones again and again; and should the run be trained on meanwhile, all of the report is
    about the rounds that were there when it began.
    """

    memory: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def wrap(cls, run: Run, progress: Progress | None = None) -> Remembered:
        """The run, whose analyses tell `progress` how far they are."""
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
    """Pictures and tables that could not be made, with the reason: the rest of the page is written without them."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}

    def add(self, name: str, reason: BaseException) -> str:
        """The sentence for one of them, remembered by its name."""
        self.reasons[name] = f"could not be drawn: {' '.join(str(reason).split()) or type(reason).__name__}"
        return self.reasons[name]


class Ear:
    """Hears the analyses of a run one after the other, and tells how far the run is."""

    def __init__(self, progress: Told) -> None:
        self._told = progress
        self._reached = self._end = 0.0

    def work(self, run: Run, done: int, jobs: Sequence[Job]) -> None:
        """Do the jobs of a run, after `done` runs are finished; what one lacks for a job is said where it is drawn."""
        whole, begun = sum(weight for weight, _ in jobs), 0.0
        self._told(done, run.name)
        for weight, job in jobs:
            self._reached = done + begun / whole
            begun += weight
            self._end = done + begun / whole
            with suppress(Exception):  # what is lacking or fails is told where it is drawn
                job(run)
            self._reached = self._end
            self._told(self._end, run.name)

    def hear(self, steps: int, total: int) -> None:
        """Progress of an analysis. How many a job has is not known, so each takes half of what is left of it."""
        reached = self._reached + 0.5 * (self._end - self._reached) * steps / max(total, 1)
        self._told(reached, f"{steps} of {total}")
        self._reached = reached if steps == total else self._reached
