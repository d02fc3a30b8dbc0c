"""A claim of a paper, and the verdict of runs on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import stats

from drift.analyses.over_seeds import VERDICT, t_interval
from drift.runs.run import Run

Effects = Mapping[int, float]
"""Effect by seed; positive as claimed."""

Measure = Callable[[Sequence[Run]], Effects]
"""Runs -> effects; LookupError names the missing run."""

Judgement = Literal["holds", "fails", "undecided", "not tested"]


@dataclass(frozen=True)
class Interval:
    """Mean of one effect per seed with Student's interval and test.

    Args:
        mean: NaN without a seed.
        low, high: 95 % interval; NaN below two seeds.
        p: Of the two-sided test that the mean is 0; NaN below two seeds.
        number: Of seeds.
    """

    mean: float
    low: float
    high: float
    p: float
    number: int


@dataclass(frozen=True)
class Verdict:
    """The verdict of runs on a claim.

    Args:
        interval: Of the effect over seeds, positive as claimed.
        seeds: Seeds that it was measured on.
        reason: Why there is no verdict, or which seeds lack a run; empty where all is measured.
        setting: Item of a campaign whose runs were judged; empty for runs from elsewhere.
        holm: p adjusted for all claims that were judged together (`adjusted`); NaN below three seeds.
    """

    claim: Claim
    outcome: Judgement
    interval: Interval
    seeds: tuple[int, ...] = ()
    reason: str = ""
    setting: str = ""
    holm: float = float("nan")


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
        across: Whether it compares settings, so that several items of a campaign are judged together.
        of_run: Number of one run that such a claim compares; a campaign stores the results behind it with the run.
    """

    name: str
    item: str
    statement: str
    effect: str
    unit: str
    measure: Measure
    across: bool = False
    of_run: Callable[[Run], float] | None = None

    def judge(
        self, runs: Sequence[Run], *, setting: str = "", reason: str = "the runs give no number for it"
    ) -> Verdict:
        """Holds where the interval lies above 0, fails where it lies below, undecided where it contains 0.

        Undecided as well below three seeds; not tested where no seed has the runs.

        Args:
            runs: Of any settings and seeds; the claim selects its own.
            setting: Name of their setting.
            reason: What a verdict without runs says.
        """
        effects, missing = self._by_seed(runs)
        interval, seeds = over_seeds(list(effects.values())), tuple(effects)
        if not effects:
            return Verdict(self, "not tested", interval, (), next(iter(missing.values()), reason), setting)
        reason = "; ".join(f"seed {seed}: {text}" for seed, text in missing.items())
        if len(effects) < VERDICT:
            named = ", ".join(map(str, seeds))
            few = f"seeds {named} alone say too little of chance; {VERDICT} or more are needed"
            return Verdict(self, "undecided", interval, seeds, "; ".join(filter(None, (few, reason))), setting)
        outcome: Judgement = "holds" if interval.low > 0 else "fails" if interval.high < 0 else "undecided"
        return Verdict(self, outcome, interval, seeds, reason, setting)

    def _by_seed(self, runs: Sequence[Run]) -> tuple[dict[int, float], dict[int, str]]:
        """Effects of the seeds that have their runs, and why the others have none."""
        effects: dict[int, float] = {}
        missing: dict[int, str] = {}
        for seed in sorted({run.experiment.seed for run in runs}):
            try:
                measured = self.measure([run for run in runs if run.experiment.seed == seed])
            except LookupError as reason:
                missing[seed] = str(reason)
                continue
            effects |= {own: value for own, value in measured.items() if np.isfinite(value)}
        return dict(sorted(effects.items())), missing


def over_seeds(values: Sequence[float]) -> Interval:
    """Mean of one value per seed, with the interval and the two-sided test of Student's t for paired differences."""
    nan, count = float("nan"), len(values)
    if count < 2:
        return Interval(float(values[0]) if count else nan, nan, nan, nan, count)
    mean, low, high = (float(end[0]) for end in t_interval(np.array(values, dtype=np.float64)[:, None]))
    error = float(np.std(values, ddof=1) / np.sqrt(count))
    ratio = abs(mean) / error if error > 0 else np.inf if mean else 0.0
    return Interval(mean, low, high, float(2 * stats.t.sf(ratio, count - 1)), count)


def adjusted(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The same verdicts with p adjusted by Holm over all of them that have three seeds or more.

    With the adjusted p the chance that any claim is decided wrongly is bounded, instead of that for each claim alone.

    Source: Holm 1979, Scandinavian Journal of Statistics 6.
    """
    tested = [place for place, verdict in enumerate(verdicts) if verdict.interval.number >= VERDICT]
    tested.sort(key=lambda place: verdicts[place].interval.p)
    result, largest = list(verdicts), 0.0
    for rank, place in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - rank) * verdicts[place].interval.p))
        result[place] = replace(verdicts[place], holm=largest)
    return result
