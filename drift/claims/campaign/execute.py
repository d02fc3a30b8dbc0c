"""Train the runs of a plan within a budget and write their files; recorded runs are not trained again."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from drift.claims import claims as all_claims
from drift.claims import questions
from drift.claims.campaign import records
from drift.claims.campaign.judge import Recorded, ask, by_identity
from drift.claims.campaign.plan import PlanItem, Unit
from drift.claims.campaign.recorded_run import RecordedRun
from drift.claims.claim import NAN
from drift.config.experiment import Experiment
from drift.parallel.worker_pool import Workers
from drift.plugins.trust import allow_named
from drift.runs.context import Context
from drift.runs.run import Run
from drift.simulation.description import versions
from drift.simulation.shared_rounds import begin_from
from drift.simulation.simulate import Diverged, simulate
from drift.store.round_record import Round

Report = Callable[[str], None]
"""(line of text) -> None."""


@dataclass(frozen=True)
class Folders:
    """Folders of a campaign.

    Args:
        runs: Of runs.
        files: Of the committed files, one per finished run.
        data: Of the datasets; None: as `landscape.datasets` finds them.
    """

    runs: Path
    files: Path
    data: Path | None = None


@dataclass(frozen=True)
class UnitResult:
    """How a run of the plan ended: recorded, diverged (and recorded up to there), stopped by the budget, or failed.

    A set is incomplete, said after its last run, if a claim of its item has no number from its files. The reason says
    why a run diverged or failed, and which claims have no number and why.
    """

    unit: Unit
    state: str
    reason: str = ""


class _BudgetUsed(Exception):
    """Raised between two rounds; committed rounds stay."""


def recorded(sets: Iterable[Sequence[Unit]], files: Path) -> dict[str, set[str]]:
    """Names of the claims that the file of each run has no number for, by identity of the run: of most runs, none."""
    have = by_identity(files)
    named: dict[str, set[str]] = {identity: set() for identity in have}
    for units in sets:
        for unit, names in lacking(units, have).items():
            named[unit.identity] |= names
    return named


def lacking(units: Sequence[Unit], have: Recorded) -> dict[Unit, set[str]]:
    """Claims that files of a paired set have no number for, by run; one that diverged has none."""
    observed = {unit: records.Observed(have[unit.identity]) for unit in units if unit.identity in have}
    observed = {unit: run for unit, run in observed.items() if not run.diverged}
    _ask(units[0].item, list(observed.values()))
    return {unit: run.lacking for unit, run in observed.items() if run.lacking}


def _unanswered(units: Sequence[Unit], have: Recorded) -> list[str]:
    """Claims on a paired set that have no number, and why, where all of its runs have a file and none diverged.

    A claim about methods that the plan does not train with the seed of the set is none of its claims.
    """
    runs = [have[unit.identity] for unit in units if unit.identity in have]
    if len(runs) < len(units) or any(run.diverged for run in runs):
        return []
    labels = {run.label for run in runs}
    asked = [
        claim
        for claim in (*all_claims(), *questions())
        if claim.name in units[0].item.claims and not claim.across and labels.issuperset(claim.methods)
    ]
    verdicts = [claim.judge(runs, reason="") for claim in asked]  # type: ignore[arg-type]  # they stand for runs
    reasons = {verdict.claim.name: verdict.reason for verdict in verdicts if verdict.reason and not verdict.seeds}
    for unit, names in lacking(units, have).items():
        missing = f"values that it reads of {have[unit.identity].name} are missing"
        reasons |= dict.fromkeys(sorted(name for name in names if reasons.get(name, NAN) == NAN), missing)
    return [f"{name} has no number: {reason}" for name, reason in reasons.items()]


def execute(
    sets: Sequence[Sequence[Unit]],
    folders: Folders,
    *,
    hours: float | None = None,
    workers: int = 1,
    device: str = "auto",
    report: Report = lambda line: None,
) -> Iterator[UnitResult]:
    """Train and record paired sets of runs, in order; yields how each run ended.

    Stopped at any moment, the same call goes on where it was.

    Args:
        sets: Runs with one item and seed; later ones take the rounds that they share with an earlier one from it.
        hours: Core-hours after which no further round is trained.
        workers: Processes; each trains one set at a time on one thread.
        device: As in an experiment.
        report: Called with a line for each run that begins, and for each that is measured (with one worker).
    """
    seconds = None if hours is None else hours * 3600 / workers
    if workers == 1:
        yield from _lane(sets, folders, seconds, device, report)
        return
    lanes = [list(sets[start::workers]) for start in range(min(workers, len(sets)))]
    with Workers(workers) as pool:
        for _, results in pool.as_completed(_full_lane, [(lane, folders, seconds, device) for lane in lanes]):
            yield from results


def _full_lane(state: None, job: tuple[list[Sequence[Unit]], Folders, float | None, str]) -> list[UnitResult]:
    return list(_lane(*job, lambda line: None))


def _lane(
    sets: Sequence[Sequence[Unit]], folders: Folders, seconds: float | None, device: str, report: Report
) -> Iterator[UnitResult]:
    begin = time.process_time()

    def spent() -> bool:
        return seconds is not None and time.process_time() - begin >= seconds

    for units in sets:
        diverged, anew = set[str](), dict[Unit, bool]()
        for index, unit in [*enumerate(units)] * 2:  # a run may be asked only after a later one has its results
            if spent():
                return
            first = unit not in anew
            if not first and (anew[unit] or not any(anew.values())):
                continue
            anew[unit] = not _file(unit, folders).exists() or unit in lacking(units, _files_of(units, folders.files))
            if not anew[unit]:
                if first:
                    yield UnitResult(unit, "recorded")
                continue
            try:
                result = _train(unit, units[index + 1 :], folders, device, spent, report)
            except Diverged as reason:  # an outcome, which the same command would only meet again
                result = UnitResult(unit, "diverged", str(reason))
                diverged.add(unit.experiment.slug)
            except (ValueError, LookupError, RuntimeError) as reason:  # the other runs go on
                result = UnitResult(unit, "failed", " ".join(str(reason).split()))
            if result.state == "recorded":
                report(f"{unit.item.name}, seed {unit.seed}: measuring its rounds for claims, beyond any budget")
            record_finished(units, folders, diverged)
            yield result
        if reasons := _unanswered(units, _files_of(units, folders.files)):
            yield UnitResult(units[-1], "incomplete", "; ".join(reasons))


def _file(unit: Unit, folders: Folders) -> Path:
    return folders.files / f"{unit.experiment.slug}.json"


def _files_of(units: Sequence[Unit], files: Path) -> Recorded:
    """Those of a set that have a file."""
    have: dict[str, RecordedRun] = {}
    for unit in units:
        with suppress(LookupError):  # starts from a checkpoint that is not there
            if (path := files / f"{unit.experiment.slug}.json").exists():
                have[unit.identity] = records.read(path)
    return have


def _train(
    unit: Unit,
    later: Sequence[Unit],
    folders: Folders,
    device: str,
    spent: Callable[[], bool],
    report: Report,
) -> UnitResult:
    experiment = _on(unit.experiment, device)
    allow_named(experiment.task.model)
    run = Run(folders.runs / experiment.slug, Context(folders.data))
    report(f"{unit.item.name}, seed {unit.seed}: {run.name}, {run.committed} of {experiment.rounds} rounds are on disk")

    def watch(record: Round) -> None:
        if spent():
            raise _BudgetUsed

    others = [_on(other.experiment, device) for other in later]
    shared = [other.method.rounds_shared(experiment.method, experiment.rounds) for other in others]
    try:
        for stop in sorted({*shared, experiment.rounds} - {0}):
            run = simulate(experiment, runs=folders.runs, data=folders.data, until=stop, progress=watch)
            for other, rounds in zip(others, shared, strict=True):
                if rounds == stop < experiment.rounds and run.committed == stop and run.about["versions"] == versions():
                    begin_from(run, other, runs=folders.runs)
    except _BudgetUsed:
        return UnitResult(unit, "stopped")
    return UnitResult(unit, "recorded")


def record_finished(units: Sequence[Unit], folders: Folders, diverged: Collection[str] = ()) -> None:
    """Write the files of an item's finished runs: their numbers, and the results that its claims read from them.

    A run is done, also where its folder is lost, once its file has these results.

    Args:
        diverged: Names of the runs that diverged; their files have the numbers up to there.
    """
    runs = [Run(folders.runs / unit.experiment.slug, Context(folders.data)) for unit in units]
    observed = [
        records.Observed(run)
        for run, unit in zip(runs, units, strict=True)
        if (run.folder / "run.json").exists() and run.committed == unit.experiment.rounds
    ]
    there = {run.name for run in observed}
    filed = [run for run in _files_of(units, folders.files).values() if run.name not in there and not run.diverged]
    _ask(units[0].item, [*observed, *map(records.Observed, filed)])
    for run in observed:
        if run.results or not (folders.files / f"{run.name}.json").exists():
            records.write(folders.files, run.run, run.results, plan=units[0].item.digest)  # type: ignore[arg-type]  # trained here, so with a folder
    for diverging in runs:
        if diverging.name in diverged and not (folders.files / f"{diverging.name}.json").exists():
            records.write(folders.files, diverging, {}, diverged=True, plan=units[0].item.digest)


def _ask(item: PlanItem, observed: Sequence[records.Observed]) -> None:
    """Read the results of runs that the claims of an item read."""
    for claim in (*all_claims(), *questions()):
        if claim.name in item.claims:
            ask(claim, observed)


def _on(experiment: Experiment, device: str) -> Experiment:
    return experiment.model_copy(update={"device": device})
