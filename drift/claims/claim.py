"""A claim of a paper, and the verdict of runs on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from drift.analyses.bootstrap import mean_interval
from drift.runs.run import Run

Effects = Mapping[int, float]
"""Effect by seed; positive as claimed."""

Measure = Callable[[Sequence[Run]], Effects]
"""Runs -> effects; LookupError names the missing run."""

LEAST = 3
"""Smallest number of seeds for a verdict; intervals of fewer are not reliable."""

Judgement = Literal["supported", "not supported", "not testable here"]


@dataclass(frozen=True)
class Verdict:
    """The verdict of runs on a claim.

    Args:
        effect: Mean over seeds, positive as claimed; NaN where nothing could be measured.
        low, high: 95 % interval of it by the paired bootstrap over seeds; NaN with one.
        seeds: Seeds that it was measured on.
        reason: Why it is not testable; empty where it is.
    """

    claim: Claim
    outcome: Judgement
    effect: float
    low: float
    high: float
    seeds: tuple[int, ...]
    reason: str = ""


@dataclass(frozen=True)
class Claim:
    """A statement of a paper with the effect that it is about.

    Args:
        name: Short name, the paper first.
        item: Figure or table.
        statement: The statement of the paper.
        effect: What is measured, positive as claimed.
        unit: Its unit.
        measure: Gives it seed by seed; both members of a difference come from one seed.
    """

    name: str
    item: str
    statement: str
    effect: str
    unit: str
    measure: Measure

    def judge(self, runs: Sequence[Run]) -> Verdict:
        """Supported where the interval lies above 0, not supported where it does not.

        Not testable where a run is missing, or where there are fewer than three seeds.
        """
        nan = float("nan")
        try:
            effects = {seed: value for seed, value in self.measure(runs).items() if np.isfinite(value)}
        except LookupError as missing:
            return Verdict(self, "not testable here", nan, nan, nan, (), str(missing))
        if not effects:
            return Verdict(self, "not testable here", nan, nan, nan, (), "the runs give no number for it")
        values, seeds = np.array(list(effects.values())), tuple(sorted(effects))
        interval = mean_interval(values)
        if len(values) < LEAST:
            reason = f"seeds {', '.join(map(str, seeds))} alone say too little of chance; {LEAST} or more are needed"
            return Verdict(self, "not testable here", interval.value, interval.low, interval.high, seeds, reason)
        outcome: Judgement = "supported" if interval.positive else "not supported"
        return Verdict(self, outcome, interval.value, interval.low, interval.high, seeds)
