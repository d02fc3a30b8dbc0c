"""What an analysis that trains will cost, told before it starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drift.runs.run import Run


@dataclass(frozen=True)
class Effort:
    """Work of an analysis.

    Args:
        trainings: Local trainings of one client.
        forwards: Forward passes of one sample.
        memory: Bytes held at most: models, and outputs by the analysis's own budget.
        seconds: Estimate; NaN where the run recorded no time.
    """

    trainings: int
    forwards: int
    memory: int
    seconds: float

    def __str__(self) -> str:
        time = "unknown time" if np.isnan(self.seconds) else f"about {_spoken(self.seconds)}"
        return f"{self.trainings} trainings, {self.forwards:.3g} forward passes, {self.memory / 2**20:.0f} MiB, {time}"


def effort(run: Run, *, trainings: int, forwards: int, memory: int, workers: int = 1) -> Effort:
    """The effort of so many trainings and forward passes, timed by what the run's own rounds took.

    A client trained as long as the mean of the recorded rounds over the clients in each; a forward pass is taken as a
    third of a training step's share of a sample (forward and backward).

    Raises:
        ValueError: If workers is below 1.
    """
    if workers < 1:
        raise ValueError(f"workers is {workers}; give 1 or more.")
    recorded, spec = run.metrics(), run.experiment
    if "seconds" not in recorded or not len(recorded["round"]):
        return Effort(trainings, forwards, memory, float("nan"))
    each = float(np.nanmedian(recorded.seconds)) / spec.clients.per_round
    samples = float(np.mean([len(part) for part in run.parts]))
    passes = spec.local.steps * spec.local.batch if spec.local.steps is not None else spec.local.epochs * samples
    seconds = each * trainings / workers + forwards * each / max(1.0, 3 * passes)
    return Effort(trainings, forwards, memory, seconds)


def _spoken(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )
