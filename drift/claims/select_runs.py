"""Runs and effects for a claim: one method, pairs that differ in method, series that differ in one setting."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from drift.claims.claim import Effects
from drift.runs.run import Run

OfRun = Callable[[Run], float]
OfPair = Callable[[Run, Run], float]


def of_variant(runs: Sequence[Run], options: Mapping[str, Any]) -> list[Run]:
    """Runs whose methods have these options with these values, or have no such options."""
    return [run for run in runs if all(getattr(run.method, key, value) == value for key, value in options.items())]


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
    return _by_seed((run.experiment.seed, measure(run, other)) for run, other in _pairs(runs, label, base))


def extreme_effects(
    runs: Sequence[Run], methods: Sequence[str], setting: str, measure: Callable[..., float]
) -> Effects:
    """The measure where a setting is smallest minus that where it is largest, all else equal, by seed.

    Args:
        methods: Label of the runs, or of a method and its base, whose pairs are measured.
        setting: What varies, as in "clients.partition.concentration".

    Raises:
        LookupError: If no runs of the method differ in it alone.
    """
    label, *bases = methods
    singles = [(run,) for run in runs if run.label == label]
    groups: dict[str, dict[float, tuple[Run, ...]]] = defaultdict(dict)
    for members in _pairs(runs, label, *bases, setting=setting) if bases else singles:
        rest, value = _split(members[0], setting)
        if isinstance(value, int | float):
            groups[rest][value] = members
    series = [group for group in groups.values() if len(group) > 1]
    if not series:
        raise LookupError(f"no runs of {' and '.join(methods)} that differ in {setting} alone among those given")
    ends = [(group[min(group)], group[max(group)]) for group in series]
    return _by_seed((least[0].experiment.seed, measure(*least) - measure(*most)) for least, most in ends)


def _pairs(runs: Sequence[Run], label: str, base: str, *, setting: str = "") -> list[tuple[Run, Run]]:
    """(run of a method, run of the base) that share settings and seed, and the value of one more setting.

    Raises:
        LookupError: If there is none.
    """

    def shared(run: Run) -> tuple[Any, ...]:
        return _setting(run), run.experiment.seed, _split(run, setting)[1] if setting else None

    bases: dict[tuple[Any, ...], list[Run]] = defaultdict(list)
    for run in runs:
        if run.label == base:
            bases[shared(run)].append(run)
    matched = [(run, _one_of(bases[shared(run)], run)) for run in runs if run.label == label and bases[shared(run)]]
    if not matched:
        raise LookupError(f"no runs of {label} and {base} with one setting and seed among those given")
    return matched


def _one_of(bases: Sequence[Run], run: Run) -> Run:
    """The base that trains its clients as a run does, of several ones.

    Raises:
        LookupError: If there are two, or several that train otherwise.
    """
    alike = [base for base in bases if base.experiment.local == run.experiment.local] or bases
    if len({_split(base, "")[0] for base in alike}) > 1:
        names = " and ".join(base.name for base in alike)
        raise LookupError(f"{names} have the setting and seed of {run.name}; give the one to compare it with")
    return alike[0]


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
