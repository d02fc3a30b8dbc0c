"""Runs as groups that differ in their seed only, and the settings in which groups differ."""

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from os.path import abspath, commonpath
from pathlib import Path
from typing import Any, TypeVar

from drift.config.external_run import complete_experiment
from drift.runs.run import Run
from figures.looks import palette
from landscape.results.parsed_text import dotted

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Items by their key, in their order."""
    by_key: dict[Key, list[Item]] = {}
    for item in items:
        by_key.setdefault(key(item), []).append(item)
    return by_key


def largest_group(items: Iterable[Item], key: Callable[[Item], Key], size: Callable[[list[Item]], Any]) -> list[Item]:
    """Of the groups of equal key the largest, the first among equals; empty where there is no item."""
    return max(grouped(items, key).values(), key=size, default=[])


def groups(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Runs that differ in their seed only, by name.

    The name is the method's label, and where two settings share it, how they differ; runs of the same settings and
    seed, such as two that were imported, also have the names of their folders in it. No run is dropped; a run that is
    given twice counts once. Methods are in the order of legends, runs in the order of seeds.

    Raises:
        LookupError: If no run was given, or one has no complete round.
    """
    tables = {}
    once = {run.folder.resolve(): run for run in runs}.values()
    for run in once:
        run.require_round(-1)
        tables[run.folder] = settings(run, seed=False)
    by_settings = grouped(once, lambda run: json.dumps(tables[run.folder], sort_keys=True))
    if not by_settings:
        raise LookupError("no run was given; train one: fedscape train digits-shards2.")
    all_groups = []
    for group in by_settings.values():
        own_seeds = len({run.experiment.seed for run in group}) == len(group)  # else one group per run
        all_groups += [sorted(group, key=lambda run: run.experiment.seed)] if own_seeds else [[run] for run in group]
    ordered = palette.order(group[0].label for group in all_groups)
    all_groups.sort(key=lambda group: ordered.index(group[0].label))
    return dict(zip(group_names(all_groups, tables), all_groups, strict=True))


def settings(run: Run, *, seed: bool = True) -> dict[str, Any]:
    """Resolved settings of a run by dotted name, such as local.lr; of another program's run those that it states."""
    flat = dotted(run.experiment.resolved())
    if run.about.get("imported"):
        stated = tuple(f"{name}." for name in dotted(complete_experiment(run.about)))
        flat = {name: value for name, value in flat.items() if f"{name}.".startswith(stated) and value is not None}
    return flat if seed else {name: value for name, value in flat.items() if name != "seed"}


def differing_names(tables: Sequence[dict[str, Any]]) -> list[str]:
    """Names whose values are not the same in all tables, in the order in which they first come."""
    names = dict.fromkeys(name for table in tables for name in table)
    return [name for name in names if any(table.get(name) != tables[0].get(name) for table in tables)]


def group_names(all_groups: Sequence[Sequence[Run]], tables: Mapping[Path, dict[str, Any]]) -> list[str]:
    """Names of groups of runs, whose settings by folder are `tables`: label, and how those of one label differ."""
    labels = [group[0].label for group in all_groups]
    rivals: dict[str, list[dict[str, Any]]] = {}
    for group, label in zip(all_groups, labels, strict=True):
        rivals.setdefault(label, []).append(tables[group[0].folder])
    differing = {label: differing_names(few) for label, few in rivals.items()}
    names = []
    for group, label in zip(all_groups, labels, strict=True):
        table = tables[group[0].folder]
        words = [f"{name.rpartition('.')[2]} {table.get(name, '-')}" for name in differing[label]]
        names.append(", ".join([label, *words]))
    return told_apart(names, [group[0].folder for group in all_groups])


def told_apart(names: Sequence[str], folders: Sequence[Path]) -> list[str]:
    """Names of runs or groups; equal ones also have the part of the folder's path in which they differ.

    That is the name of the folder, or of folders above it; words that all of them begin with are left out.
    """
    written = list(names)
    for name, rows in grouped(range(len(names)), names.__getitem__).items():
        paths = [Path(abspath(folders[row])) for row in rows]  # as named: links to one folder are told apart
        if len(set(paths)) == 1:
            continue
        while len({folder.name for folder in paths}) == 1:
            paths = [folder.parent for folder in paths]
        texts = [folder.name for folder in paths]
        if len(set(texts)) < len(rows):
            texts = [folder.relative_to(commonpath(paths)).as_posix() for folder in paths]
        ends = [end for end, letter in enumerate(texts[0], 1) if letter in "-_"]
        words = max((end for end in ends if all(text.startswith(texts[0][:end]) for text in texts)), default=0)
        words *= all(text[words:][:1].isalpha() for text in texts)  # a number alone names nothing
        for row, text in zip(rows, texts, strict=True):
            written[row] = f"{name}, {text[words:]}"
    return written


def written_name(name: str) -> str:
    """A group's name as legends write it."""
    method, comma, rest = name.partition(",")
    return palette.label(method) + comma + rest
