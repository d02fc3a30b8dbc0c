"""Which runs a figure shows: every run that was named, or some of a folder; and the others in words.

A list of runs is a list of named runs: a figure draws all of them, or refuses. `AnyOf` marks runs among which a figure
may choose, as `fedscape figures draw NAME FOLDER` does; the figure states what it leaves out.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from drift.runs.run import Run
from figures.selection.advised import Advised
from figures.selection.groups import differing_names, group_names, grouped, settings
from landscape import plugins


class AnyOf(list[Run]):
    """Runs among which a figure may choose.

    Args:
        runs: All of them.
        named: Those among them that the figure has to draw.
    """

    def __init__(self, runs: Iterable[Run], named: Iterable[Run] = ()) -> None:
        super().__init__(runs)
        self.named = list(named)


def require_runs(runs: Any) -> None:
    """Refuse anything but a list of runs.

    Raises:
        ValueError: With what was given, and what was probably meant.
    """
    stated = f"a {type(runs).__name__}"
    likely = "drift.open(FOLDER) gives the run in a folder."
    if isinstance(runs, Mapping):
        likely = "did you mean list(runs.values())?"
    elif hasattr(runs, "experiment"):
        likely = "did you mean [run]?"
    elif not isinstance(runs, str) and isinstance(runs, Iterable):
        wrong = next((run for run in runs if not hasattr(run, "experiment")), None)
        if wrong is None:
            return
        stated += f" with a {type(wrong).__name__} in it"
    raise ValueError(f"figures take a list of runs, and were given {stated}; {likely}")


def required_runs(runs: Sequence[Run]) -> list[Run]:
    """The runs that a figure has to draw: all but those among which it may choose."""
    return runs.named if isinstance(runs, AnyOf) else list(runs)


def subset(runs: Sequence[Run], selected: Iterable[Run]) -> Sequence[Run]:
    """A part of the runs, with the same freedom to choose as the whole."""
    if not isinstance(runs, AnyOf):
        return list(selected)
    selected = list(selected)
    folders = {run.folder for run in selected}
    return AnyOf(selected, [run for run in runs.named if run.folder in folders])


def map_runs(runs: Sequence[Run], change: Callable[[Run], Run]) -> Sequence[Run]:
    """The changed runs, with the same freedom to choose; a change keeps the folder, such as another progress."""
    changed = [change(run) for run in runs]
    if not isinstance(runs, AnyOf):
        return changed
    folders = {run.folder for run in runs.named}
    return AnyOf(changed, [run for run in changed if run.folder in folders])


def narrow(runs: Sequence[Run], selected: Iterable[Run], why: str) -> Sequence[Run]:
    """The selected part of the runs, where no other run has to be drawn.

    Args:
        why: Reason why the others cannot be drawn, like "the figure shows one method".

    Raises:
        ValueError: If a run would be left out that has to be drawn.
    """
    selected = list(selected)
    folders = {run.folder for run in selected}
    if out := [run for run in required_runs(runs) if run.folder not in folders]:
        raise refusal(out, why)
    return subset(runs, selected)


def refusal(out: Sequence[Run], why: str) -> Advised:
    """The error for named runs that would not be drawn."""
    what = f"{join_names([run.name for run in out])} would not be drawn: {why}."
    return names_advised(what, f"Leave {'it' if len(out) == 1 else 'them'} out")


def names_advised(what: str, advice: str) -> Advised:
    """An error about runs that were named one by one."""
    return Advised(what, f"{advice}, or give a folder of runs to choose from (figures.gallery.AnyOf in Python).")


def select_runs(
    runs: Sequence[Run], methods: str | Sequence[str] | None = None, seed: int | None = None
) -> Sequence[Run]:
    """The runs of these methods and of this seed; None stands for all.

    Raises:
        LookupError: If there is none of a method or of the seed; names those that there are.
    """
    selected = list(runs)
    if methods is not None:
        wanted = [methods] if isinstance(methods, str) else list(methods)
        labels = list(dict.fromkeys(run.label for run in selected))
        for name in wanted:
            if selected and name not in labels:
                raise LookupError(plugins.unknown("method of these runs", name, labels))
        selected = [run for run in selected if run.label in wanted]
    if seed is not None:
        seeds = sorted({run.experiment.seed for run in selected})
        if selected and seed not in seeds:
            raise LookupError(f"no run of seed {seed}; the runs have seeds {', '.join(map(str, seeds))}.")
        selected = [run for run in selected if run.experiment.seed == seed]
    return subset(runs, selected)


def describe_groups(groups: Sequence[Sequence[Run]], keys: Collection[str]) -> str:
    """The settings in which groups of runs differ, with their values, like "rounds (3: fedavg-a; 4: ima-b)".

    Args:
        groups: Of each group, the first run is described.
        keys: First parts of the settings that are compared, such as task, clients, rounds.
    """
    tables = [_settings(group[0]) for group in groups]
    names = [name for name in differing_names(tables) if name.partition(".")[0] in keys]
    texts = []
    for name in names[:MOST]:
        values: dict[str, list[str]] = {}
        for table, group in zip(tables, groups, strict=True):
            values.setdefault(str(table.get(name, "without")), []).extend(run.name for run in group)
        texts.append(f"{name} ({'; '.join(f'{value}: {join_names(runs)}' for value, runs in values.items())})")
    return join_names(texts + names[MOST:], len(texts))


def settings_key(run: Run, over: Collection[str] = ()) -> str:
    """The settings of a run as text, without its seed and without the settings that a figure compares.

    Args:
        over: Keys of these settings, such as local.lr_decay or method.start.
    """
    prefixes = tuple(f"{key}." for key in ("seed", *over))
    shared = {name: value for name, value in _settings(run).items() if not f"{name}.".startswith(prefixes)}
    return json.dumps(shared, sort_keys=True)


def line_names(runs: Iterable[Run]) -> dict[Path, str]:
    """Name of each run's line, by folder: its label, and where runs of one label differ in settings, these.

    Runs that differ in their seed only have one name.
    """
    variants = list(grouped(runs, lambda run: run.label + settings_key(run)).values())
    tables = {group[0].folder: {**_settings(group[0]), "seed": 0} for group in variants}
    names = group_names(variants, tables)
    return {run.folder: name for name, group in zip(names, variants, strict=True) for run in group}


def one_option(groups: Iterable[Sequence[Run]]) -> bool:
    """Whether groups of runs of one method differ in one of its options, or of its local training, alone."""
    names = differing_names([{**_settings(group[0]), "seed": 0} for group in groups])
    return len(names) == 1 and names[0].partition(".")[0] in ("method", "local", "proxy")


def count_differences(runs: Sequence[Run], shown: Sequence[Run]) -> dict[str, int]:
    """Settings in which runs differ from the most similar of the shown runs, with the number of runs; FIRST first."""
    out, others = ([(run.label, _settings(run)) for run in some] for some in (runs, shown))
    differing = (min((_names(run, other) for other in others), key=len) for run in out)
    counts = Counter(name for names in differing for name in names or ["no setting"])
    return {name: counts[name] for name in sorted(counts, key=lambda name: (name not in FIRST, -counts[name]))}


def join_names(names: Sequence[str], most: int = 4, between: str = ", ") -> str:
    """Names joined by commas, or what stands between them, those beyond `most` as a number."""
    shown, rest = list(names[:most]), len(names) - most
    return between.join(shown) + (f" and {rest} more" if rest > 0 else "")


MOST = 3
"""Settings that a line names."""

FIRST = ("method", "task.dataset", "task.model", "clients.partition.name", "rounds")
"""Settings that are named before others."""


def _names(run: tuple[str, dict[str, object]], other: tuple[str, dict[str, object]]) -> list[str]:
    """Settings in which two runs differ; where the method differs, without the seed and the method's own settings."""
    names = differing_names([run[1], other[1]])
    if run[0] == other[0]:
        return names
    tables = ("task", "clients", "rounds")
    return ["method", *(name for name in names if name.partition(".")[0] in tables and "valid_ratio" not in name)]


def _settings(run: Run) -> dict[str, object]:
    return {name: value for name, value in settings(run).items() if name.partition(".")[0] not in ("keep", "threads")}
