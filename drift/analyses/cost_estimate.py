"""Estimated cost of an analysis, stated before it starts."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from drift.parallel.job_pool import require_workers
from drift.runs.run import Run


@dataclass(frozen=True)
class Effort:
    """Work of an analysis.

    Args:
        trainings: Local trainings of one client.
        forwards: Forward passes of one sample.
        memory: Largest number of bytes for models and outputs.
        seconds: Estimate; NaN where the run recorded no time, or is of another program, whose settings are unknown.
    """

    trainings: int
    forwards: int
    memory: int
    seconds: float

    def __str__(self) -> str:
        time = "unknown time" if np.isnan(self.seconds) else f"about {_time_text(self.seconds)}"
        return f"{self.trainings} trainings, {self.forwards:.3g} forward passes, {self.memory / 2**20:.0f} MiB, {time}"


def effort(run: Run, *, trainings: int, forwards: int, memory: int, workers: int = 1) -> Effort:
    """Effort of trainings and forward passes; the seconds follow from the recorded seconds of the run's rounds.

    One training takes the median seconds of a round, divided by its clients. A forward pass of one sample takes a third
    of the time that training (forward and backward) takes per sample.

    Raises:
        ValueError: If workers is below 1.
    """
    require_workers(workers)
    recorded, spec = run.metrics(), run.experiment
    if run.about.get("imported") or "seconds" not in recorded or not len(recorded["round"]):
        return Effort(trainings, forwards, memory, float("nan") if trainings or forwards else 0.0)
    per_client = float(np.nanmedian(recorded.seconds)) / spec.clients.per_round
    samples = float(np.mean([len(numbers) for numbers in run.parts]))
    passes = spec.local.steps * spec.local.batch if spec.local.steps is not None else spec.local.epochs * samples
    seconds = per_client * trainings / workers + forwards * per_client / max(1.0, 3 * passes)
    return Effort(trainings, forwards, memory, seconds)


def complete_options(analysis: Callable[..., Any], run: Run, options: Mapping[str, Any]) -> SimpleNamespace:
    """Options of an analysis as attributes, with its defaults where they are missing.

    Raises:
        TypeError: If the analysis has no such option.
    """
    bound = inspect.signature(analysis).bind(run, **options)
    bound.apply_defaults()
    return SimpleNamespace(**bound.arguments)


def _time_text(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
