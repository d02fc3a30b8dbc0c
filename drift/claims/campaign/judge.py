"""Verdicts of the files of a campaign: each claim on the runs of the plan's items that bear on it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from drift.claims import ACROSS, claims
from drift.claims.campaign import records
from drift.claims.campaign.plan import Plan, PlanItem, Unit, hours, identity
from drift.claims.campaign.recorded_run import RecordedRun
from drift.claims.claim import Claim, Verdict, adjusted
from drift.claims.measures import LAST

Recorded = Mapping[str, RecordedRun]
"""Runs by `plan.identity`."""

NO_RUNS = "the plan has no runs for it"

NUMBERS = ("rounds", "block", "measured", "blocks", "points", "results")
"""Parts of a file that claims read."""


def judge(plan: Plan, files: Path | Recorded, *papers: str) -> list[Verdict]:
    """Verdicts on the claims of papers, of all where none is named, with p adjusted over the claims of all papers.

    "cross" names the questions across the papers, which are adjusted on their own. A claim that several items of the
    plan bear on is judged on each of them that has runs; one that compares settings, on all of them together. A claim
    has one more verdict for the items without a number, not tested, whose reason names them and says what their runs
    cost, and one for items of the same tables of which the plan does not ask it, although they have its methods.

    Raises:
        ValueError: If there is no such paper, or a file is none of a campaign, or damaged.
    """
    asked = {claim.name for claim in claims(*papers)}
    recorded = by_identity(files) if isinstance(files, Path) else files
    families = [claims()] * (papers != (ACROSS,)) + [claims(ACROSS)] * (ACROSS in papers)
    verdicts = [verdict for family in families for verdict in of_claims(family, plan, recorded)]
    return [verdict for verdict in verdicts if verdict.claim.name in asked]


def of_claims(selected: Sequence[Claim], plan: Plan, recorded: Recorded) -> list[Verdict]:
    """The same for some claims, or for questions across the papers (`drift.claims.cross`)."""
    return adjusted([verdict for claim in selected for verdict in _of_claim(claim, plan, recorded)])


def by_identity(files: Path) -> Recorded:
    """Recorded runs by their settings.

    Raises:
        ValueError: If two files of one run have different numbers; copies are one.
    """
    recorded: dict[str, RecordedRun] = {}
    for run in records.read_all(files):
        other = recorded.setdefault(identity(run.experiment), run)
        if differing := [key for key in NUMBERS if run.content[key] != other.content[key]]:
            raise ValueError(
                f"{other.path} and {run.path} are files of one run with different {differing[0]}; delete one of them."
            )
    return recorded


def runs_of(items: Sequence[PlanItem], plan: Plan, recorded: Recorded) -> list[RecordedRun]:
    """Recorded runs of items, each once, but for those that diverged: they have no last rounds to compare."""
    return [run for run in _recorded_of(items, plan, recorded) if not run.diverged]


def diverged_of(items: Sequence[PlanItem], plan: Plan, recorded: Recorded) -> list[RecordedRun]:
    """Recorded runs of items that diverged, each once."""
    return [run for run in _recorded_of(items, plan, recorded) if run.diverged]


def without_number(run: RecordedRun, *, accuracy: bool = True) -> str:
    """Why a run has no last rounds to compare: it diverged, or lacks accuracies of its last evaluations; "" if not."""
    if run.diverged:
        return f"{run.label} diverged after round {run.rounds()[-1]}"
    if not accuracy or "accuracy" not in (metrics := run.metrics()):
        return ""
    values = metrics["accuracy"][-LAST if metrics.sizes["round"] >= LAST else -1 :]
    finite = values.dropna("round")["round"].values
    missing = sorted({*values["round"].values.tolist(), run.rounds()[-1]} - {*finite.tolist()})
    return f"{run.label} has no accuracy in round {', '.join(map(str, missing))}" if missing else ""


def _recorded_of(items: Sequence[PlanItem], plan: Plan, recorded: Recorded) -> list[RecordedRun]:
    selected = {key: recorded[key] for unit in _units(items, plan) if (key := unit.identity) in recorded}
    _require_one_start(list(selected.values()))
    return list(selected.values())


def ask(claim: Claim, runs: Sequence[records.Observed]) -> None:
    """Let a claim read its results of runs; those that have no number for it note its name in `lacking`.

    A run lacks a result that is absent, or values without which the number of the claim is NaN: with others in their
    place it would not be.
    """
    same = [[run for run in runs if run.experiment.seed == seed] for seed in {run.experiment.seed for run in runs}]
    for group in same:
        _note(claim, group, lambda group=group: claim.measure(group).values())  # type: ignore[misc]
        for run in group if claim.of_run is not None else ():
            _note(claim, [run], lambda run=run: [claim.of_run(run)])  # type: ignore[misc]


def _note(claim: Claim, runs: Sequence[records.Observed], numbers: Callable[[], Iterable[float]]) -> None:
    def known(*filled: records.Observed) -> bool:
        for run in runs:
            run.absent = run.partial = False
            run.filled = run in filled
        return _known(numbers)

    missing, partial = not known(), [run for run in runs if run.partial]
    short = [run for run in runs if run.absent]
    if missing and known(*partial):
        short += [run for run in partial if not known(*(other for other in partial if other is not run))]
    for run in runs:
        run.filled = False
    for run in short:
        run.lacking.add(claim.name)


def _known(numbers: Callable[[], Iterable[float]]) -> bool:
    """Whether none of the numbers is NaN; where a run or a result is absent, that is the reason for having none."""
    try:
        return bool(np.isfinite(list(numbers())).all())
    except LookupError:
        return True


def _of_claim(claim: Claim, plan: Plan, recorded: Recorded) -> list[Verdict]:
    items = [item for item in plan.items if claim.name in item.claims]
    groups = [items] if claim.across else [[item] for item in items]
    judged = [(group, _of_runs(claim, _recorded_of(group, plan, recorded), group)) for group in groups if group]
    reasons = [_waiting(claim, [pair for pair in judged if not pair[1].seeds], plan, recorded)] if items else [NO_RUNS]
    reasons.append(_unasked(claim, items, plan, recorded))
    untested = [claim.judge([], reason=reason) for reason in reasons if reason]
    return [*(verdict for _, verdict in judged if verdict.seeds), *untested]


def _of_runs(claim: Claim, every: Sequence[RecordedRun], group: Sequence[PlanItem]) -> Verdict:
    """The verdict of runs. Seeds with `Claim.instead` alone count where no other has more: one mean, one measure.

    A seed of which a run diverged, or lacks accuracies that the claim reads (it is in points), says so.
    """
    lost: dict[int, str] = {}
    for run in every:
        taken = claim.takes(run)  # type: ignore[arg-type]  # a file stands for its run
        if taken and (why := without_number(run, accuracy=claim.unit == "points")):
            lost[run.experiment.seed] = ", ".join(filter(None, [lost.get(run.experiment.seed), why]))
    runs = [run for run in every if not run.diverged]
    short = _short(claim, runs) if claim.instead else []
    complete = {run.experiment.seed for run in runs if run.label in claim.methods} - set(short)
    measured = [run for run in runs if run.experiment.seed in complete] if complete and short else runs
    printed, setting = group[0].printed.get(claim.name), ", ".join(item.name for item in group)
    verdict = claim.judge(measured, setting=setting, printed=printed, lost=lost)  # type: ignore[arg-type]  # the same
    if measured is runs:
        return replace(verdict, short=len(short))
    left = f"left out, with {claim.instead}: seed {', '.join(map(str, short))}"
    return replace(verdict, reason=f"{verdict.reason}; {left}".removeprefix("; "))


def _short(claim: Claim, runs: Sequence[RecordedRun]) -> list[int]:
    """Seeds of runs whose files lack results that the claim asks for."""
    ask(claim, observed := [records.Observed(run) for run in runs])
    return [run.experiment.seed for run in observed if run.lacking]


def _waiting(claim: Claim, left: Sequence[tuple[Sequence[PlanItem], Verdict]], plan: Plan, recorded: Recorded) -> str:
    """Why items have no number for a claim, and what their runs cost."""
    absent = [unit for group, _ in left for unit in _units(group, plan) if unit.identity not in recorded]
    missing = dict.fromkeys(unit.item.name for unit in absent)
    again, others = [], []
    for group, verdict in left:
        if names := [item.name for item in group if item.name not in missing]:
            ask(claim, runs := [records.Observed(run) for run in runs_of(group, plan, recorded)])
            again += names if (lacks := any(run.lacking for run in runs)) else []
            others += [] if lacks or len(names) < len(group) else [f"{', '.join(names)}: {verdict.reason}"]
    planned = f"runs that are not trained yet ({hours(absent):.1f} core-hours): {', '.join(missing)}"
    measured = f"runs without this number, which fedscape reproduce measures again: {', '.join(again)}"
    return "; ".join([planned] * bool(absent) + [measured] * bool(again) + others)


def _unasked(claim: Claim, items: Sequence[PlanItem], plan: Plan, recorded: Recorded) -> str:
    """Which items of the same tables have runs of a claim's methods, but it is not asked of them; "" if none."""
    tables = {(item.paper, item.item) for item in items if not claim.section and not claim.across}
    names: dict[bool, list[str]] = {}
    for item in plan.items:
        if item not in items and (item.paper, item.item) in tables:
            taken = [run for run in runs_of([item], plan, recorded) if claim.takes(run)]  # type: ignore[arg-type]
            if taken and {run.label for run in taken}.issuperset(claim.methods):
                names.setdefault(bool(claim.judge(taken).seeds), []).append(item.name)  # type: ignore[arg-type]
    return "; ".join(
        f"{'not planned' if measured else 'neither planned nor in the files'}: {', '.join(listed)}"
        for measured, listed in names.items()
    )


def _units(items: Sequence[PlanItem], plan: Plan) -> list[Unit]:
    names = {item.name for item in items}
    return [unit for units in plan.sets() for unit in units if unit.item.name in names]


def _require_one_start(runs: Sequence[RecordedRun]) -> None:
    """Require that runs which start from a checkpoint of one name start from the same one.

    Raises:
        ValueError: If they do not.
    """
    starts: dict[str, RecordedRun] = {}
    for run in runs:
        if (init := run.experiment.init) is None:
            continue
        other = starts.setdefault(init.path, run)
        if other.experiment.init != init:
            raise ValueError(
                f"{run.name} and {other.name} start from different checkpoints {init.path}, so that they cannot be "
                "compared; delete the files of one of them, make the checkpoint again and train its runs from it."
            )
