"""Runs and effects for a claim: one method, pairs that differ in method, series that differ in one setting."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from drift.claims.claim import Effects
from drift.methods.ima import IMA
from drift.runs.run import Run

OfRun = Callable[[Run], float]
OfPair = Callable[[Run, Run], float]


def averaging(runs: Sequence[Run], options: Mapping[str, Any]) -> list[Run]:
    """Runs of other methods than IMA, and those of IMA with these options."""
    return [
        run
        for run in runs
        if not isinstance(run.method, IMA) or all(getattr(run.method, key) == value for key, value in options.items())
    ]


def method_effects(
    runs: Sequence[Run], label: str, measure: OfRun, *, where: Callable[[Run], bool] | None = None
) -> Effects:
    """The measure of every run of a method, by seed; the mean where a seed has runs of several settings.

    Raises:
        LookupError: If there is no such run.
    """
    selected = [run for run in runs if run.label == label and (where is None or where(run))]
    if not selected:
        raise LookupError(f"none of the given runs is a suitable run of {label}")
    return _by_seed((run.experiment.seed, measure(run)) for run in selected)


def pair_effects(runs: Sequence[Run], label: str, base: str, measure: OfPair) -> Effects:
    """The measure of (run of a method, run of the base) that share setting and seed, by seed.

    Raises:
        LookupError: If there is no such pair.
    """
    bases = {(_setting(run), run.experiment.seed): run for run in runs if run.label == base}
    matched = [
        (run.experiment.seed, run, bases[_setting(run), run.experiment.seed])
        for run in runs
        if run.label == label and (_setting(run), run.experiment.seed) in bases
    ]
    if not matched:
        raise LookupError(f"no runs of {label} and {base} with one setting and seed among those given")
    return _by_seed((seed, measure(run, other)) for seed, run, other in matched)


def extreme_effects(runs: Sequence[Run], label: str, setting: str, measure: OfRun) -> Effects:
    """The measure where a setting is smallest minus that where it is largest, all else equal, by seed.

    Args:
        setting: What varies, as in "clients.partition.concentration".

    Raises:
        LookupError: If no runs of the method differ in it alone.
    """
    groups: dict[str, dict[float, Run]] = defaultdict(dict)
    for run in runs:
        rest, value = _split(run, setting)
        if run.label == label and isinstance(value, int | float):
            groups[rest][value] = run
    series = [group for group in groups.values() if len(group) > 1]
    if not series:
        raise LookupError(f"no runs of {label} that differ in {setting} alone among those given")
    return _by_seed(
        (group[min(group)].experiment.seed, measure(group[min(group)]) - measure(group[max(group)])) for group in series
    )


def _by_seed(values: Iterable[tuple[int, float]]) -> dict[int, float]:
    grouped: dict[int, list[float]] = defaultdict(list)
    for seed, value in values:
        grouped[seed].append(value)
    return {seed: fmean(numbers) for seed, numbers in sorted(grouped.items())}


def _setting(run: Run) -> str:
    spec = run.experiment
    return f"{spec.task!r} {spec.clients!r} {spec.rounds}"


def _split(run: Run, setting: str) -> tuple[str, Any]:
    """Everything else of a run's experiment as text, and the value of one setting; None where it has none.

    What changes no number of a run, how much is stored and where it trains, is left out.
    """
    content = run.experiment.resolved()
    for name in ("keep", "device"):
        content.pop(name, None)
    *parents, last = setting.split(".")
    table: Any = content
    for parent in parents:
        table = table.get(parent, {})
    value = table.pop(last, None)
    return json.dumps(content, sort_keys=True), value
