"""A claim of a paper, and the verdict of runs on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from drift.analyses.over_seeds import VERDICT, Estimate, estimate
from drift.runs.run import Run

Effects = Mapping[int, float]
"""Effect by seed; positive as claimed."""

Measure = Callable[[Sequence[Run]], Effects]
"""Runs -> effects; LookupError names the missing run."""

Test = Literal["more", "no less", "same"]
"""What a claim says of its effect: it is above zero, it is no less than zero, it is zero; the last two by a margin."""

NAN = "the effect is nan"
"""Why a seed has no effect where its runs lack values that it needs."""

Judgement = Literal["agrees", "differs", "equivalent", "too few", "not tested"]

Comparison = Literal["printed", "none", "margin"]
"""What a test compares an effect with: the paper's, none, or the margin."""


@dataclass(frozen=True)
class Verdict:
    """The verdict of runs on a claim.

    Args:
        interval: Of the effect over seeds, positive as claimed.
        seeds: Seeds that it was measured on.
        reason: Why there is no verdict, or which seeds lack a run; empty where all is measured.
        setting: Item of a campaign whose runs were judged; empty for runs from elsewhere.
        printed: Effect that the paper prints for this setting; None where it prints none.
        p: Of the test that decided (`Claim.tests`), or that did not; NaN below two seeds.
        tests: p of all tests that could have decided, this one included.
        holm: p adjusted for all tests of the claims that were judged together (`adjusted`); NaN below three seeds.
        family: Number of these tests; 0 before they are adjusted.
        short: Runs that gave `Claim.instead` of what the claim asks for, as their files lack the rest.
    """

    claim: Claim
    outcome: Judgement
    interval: Estimate
    seeds: tuple[int, ...] = ()
    reason: str = ""
    setting: str = ""
    printed: float | None = None
    p: float = float("nan")
    tests: tuple[float, ...] = ()
    holm: float = float("nan")
    family: int = 0
    short: int = 0

    @property
    def wording(self) -> str:
        """The outcome, and why seeds are too few, or the side of the paper's effect on which the interval lies.

        An interval above zero that contains the paper's effect may still lie within the margin of none, and says so. A
        question across the papers has no direction to agree with.
        """
        if self.outcome == "too few":
            few = self.interval.number < VERDICT
            return f"too few, {f'fewer than {VERDICT} seeds' if few else 'interval too wide'}"
        if self.claim.section and self.outcome in ("agrees", "differs"):
            return "excludes no effect"
        if self.outcome == "agrees" and self.printed is None:
            return f"{'sign agrees' if self.interval.low > 0 else 'no less'}; no printed effect"
        if self.outcome == "differs" and (decided := self.claim.decision(self.interval, self.printed)[1]) != "printed":
            return f"differs, {'against the claim' if decided == 'none' else 'outside the margin'}"
        if self.outcome == "not tested" or self.claim.test == "same":
            return self.outcome
        words = "equivalent to none" if self.outcome == "equivalent" else str(self.outcome)
        if words == "agrees" and self.interval.inside(self.claim.margin or 0.0):
            words += ", within the margin"
        if self.printed is None or not self.interval.excludes(self.printed):
            return words
        return f"{words}, {'above' if self.interval.value > self.printed else 'below'} the paper"


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
        test: What the statement says of the effect.
        margin: Largest effect that counts as none, and largest distance that counts as the paper's effect, in the unit;
            needed by "no less" and "same".
        across: Whether it compares settings, so that several items of a campaign are judged together.
        section: Of docs/findings.md, for a question across the papers.
        of_run: Number of one run that such a claim compares; a campaign stores the results behind it with the run.
        how: The measure's name, its options and its selection of runs, for the digest of a plan.
        correlation: Whether the effect is a correlation, whose interval is that of Fisher's z.
        instead: What the measure takes of a file that lacks the results of several rounds; empty where it takes none.
        methods: Labels of the runs that the measure needs; empty where it takes all.
        takes: Whether the measure takes a run.
    """

    name: str
    item: str
    statement: str
    effect: str
    unit: str
    measure: Measure
    test: Test = "more"
    margin: float | None = None
    across: bool = False
    section: str = ""
    of_run: Callable[[Run], float] | None = None
    how: str = ""
    correlation: bool = False
    instead: str = ""
    methods: tuple[str, ...] = ()
    takes: Callable[[Run], bool] = lambda run: True

    def __post_init__(self) -> None:
        if self.test != "more" and not self.margin:
            raise ValueError(f"claim {self.name} says {self.test!r} without a margin; give margin.")

    def judge(
        self,
        runs: Sequence[Run],
        *,
        setting: str = "",
        printed: float | None = None,
        reason: str = "the runs give no number for it",
        lost: Mapping[int, str] | None = None,
    ) -> Verdict:
        """The verdict of runs: agrees, differs, equivalent or too few seeds; not tested where no seed has the runs.

        Args:
            runs: Of any settings and seeds; the claim selects its own.
            setting: Name of their setting.
            printed: Effect that the paper prints for it.
            reason: What a verdict without runs says.
            lost: Seeds that lack a run which the claim takes, and why. They have no effect, as the rest of their runs
                would be another comparison; a claim that takes all runs may have one without it.
        """
        effects, missing = self._by_seed(runs, lost or {})
        interval, seeds = replace(estimate(list(effects.values())), fisher=self.correlation), tuple(effects)
        if not effects:
            return Verdict(self, "not tested", interval, (), next(iter(missing.values()), reason), setting, printed)
        alike = {text: [str(seed) for seed, other in missing.items() if other == text] for text in missing.values()}
        reason = "; ".join(f"seed{'s' * (len(ids) > 1)} {', '.join(ids)}: {text}" for text, ids in alike.items())
        tests = self.tests(interval, printed)
        outcome, decided = self.decision(interval, printed)
        return Verdict(self, outcome, interval, seeds, reason, setting, printed, tests[decided], (*tests.values(),))

    def decision(self, interval: Estimate, printed: float | None = None) -> tuple[Judgement, Comparison]:
        """What an interval says of the claim, and which of `tests` says so; for "too few" the test of its kind.

        The first of these that applies. Too few: below three seeds. Differs: a claim of a difference ("more", "no
        less") whose interval excludes the paper's effect and all within the margin of it. Agrees: the interval lies
        above none (zero; minus the margin for "no less") and contains the paper's effect. Equivalent: a claim of "more"
        whose interval lies within the margin. Agrees: it lies above none. Differs: it lies below. Else too few.

        The margin is the same around none and around the paper's effect: what is too small to count as an effect is too
        small to count as another effect. A paper's effect is a difference of means over its own seeds, and two tables
        of one paper print one setting with effects up to a margin apart (EVE-9). `Verdict.wording` tells where the
        interval excludes the paper's effect itself.

        A claim of no difference ("same") is equivalent where the interval lies within the margin, and differs where it
        lies outside; else too few.
        """
        margin = self.margin or 0.0
        if interval.number < VERDICT:
            return "too few", "margin" if self.test == "same" else "none"
        if self.test == "same":
            outside = interval.low > margin or interval.high < -margin
            return "equivalent" if interval.inside(margin) else "differs" if outside else "too few", "margin"
        if printed is not None and interval.excludes(printed, margin):
            return "differs", "printed"
        confirmed = printed is not None and interval.low > self._none and not interval.excludes(printed)
        if self.test == "more" and interval.inside(margin) and not confirmed:
            return "equivalent", "margin"
        if not interval.low <= self._none <= interval.high:
            return "agrees" if interval.low > self._none else "differs", "none"
        return "too few", "none"

    def tests(self, interval: Estimate, printed: float | None = None) -> dict[Comparison, float]:
        """p of every test that may decide, two-sided.

        "printed": the effect is within the margin of the paper's, tested at the nearest such value; "none": it is zero,
        for "no less" minus the margin; "margin": for a mean within the margin, that the effect reaches it, the larger p
        of both ends, doubled (two one-sided tests), and for one outside, that the effect is the margin.

        `decision` asks for a 95 % interval within the margin, where the source takes one of 90 %: it is stricter, each
        of the two one-sided tests at 2.5 %.

        Source: Schuirmann 1987, Journal of Pharmacokinetics and Biopharmaceutics 15 (two one-sided tests).
        """
        margin = self.margin or 0.0
        near = None if printed is None else float(np.clip(interval.value, printed - margin, printed + margin))
        compared: dict[Comparison, float | None] = {"none": self._none, "printed": near}
        p = {name: interval.p_at(at) for name, at in compared.items() if at is not None and self.test != "same"}
        if margin and self.test != "no less":
            p["margin"] = max(interval.p_at(margin), interval.p_at(-margin))
        return p

    @property
    def _none(self) -> float:
        return -(self.margin or 0.0) if self.test == "no less" else 0.0

    def _by_seed(self, runs: Sequence[Run], lost: Mapping[int, str]) -> tuple[dict[int, float], dict[int, str]]:
        """Effects of the seeds that have their runs, and why the others have none."""
        effects: dict[int, float] = {}
        missing = {seed: why for seed, why in lost.items() if self.methods}
        for seed in sorted({run.experiment.seed for run in runs} - {*missing}):
            try:
                measured = self.measure([run for run in runs if run.experiment.seed == seed])
            except LookupError as reason:
                missing[seed] = lost.get(seed, str(reason))
                continue
            if self.correlation:
                with np.errstate(divide="ignore"):  # a correlation of 1 has no z, and is named as missing
                    measured = {name: float(np.arctanh(value)) for name, value in measured.items()}
            effects |= {name: value for name, value in measured.items() if np.isfinite(value)}
            missing |= {name: f"the effect is {value}" for name, value in measured.items() if not np.isfinite(value)}
        return dict(sorted(effects.items())), dict(sorted(missing.items()))


def adjusted(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The same verdicts with p adjusted by Holm over all tests of those that have three seeds or more.

    A claim may be decided by one of several tests (`Claim.tests`), and each of them counts. So the chance is bounded
    that any claim is decided wrongly by an adjusted p below a level, instead of that for each claim alone.

    Source: Holm 1979, Scandinavian Journal of Statistics 6.
    """
    pairs = [(verdict, verdict.interval.number >= VERDICT) for verdict in verdicts]
    every = sorted(p for verdict, tested in pairs if tested for p in verdict.tests)
    times = (np.array(every) * np.arange(len(every), 0, -1)).clip(max=1.0)
    holm = dict(zip(every, np.maximum.accumulate(times).tolist(), strict=True))
    return [
        replace(verdict, holm=holm[verdict.p] if tested else verdict.holm, family=len(every))
        for verdict, tested in pairs
    ]
