"""Runs that an item of a paper needs: those in a folder, and the commands that train the others."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.claims.campaign import plan as campaigns
from drift.config.experiment import Experiment
from drift.config.load import read
from drift.config.shipped import plans
from figures.papers.catalogue import Item, PaperSetting
from figures.selection.groups import grouped

if TYPE_CHECKING:
    from drift.runs.run import Run

FREE = ("seed", "keep", "rounds", "threads", "engine", "device", "evaluate_every")
"""Settings in which a run of an item may differ from its preset, unless the item's grid names them."""


@dataclass(frozen=True)
class SettingRuns:
    """Runs of one setting of an item, out of a folder.

    Args:
        setting: Of the item.
        runs: Complete runs of the setting in the order of the grid.
        paired: Those of the seeds that every combination with runs has; all where there is no such seed.
        quick: Whether they are of the quick variant.
        found, missing: Number of combinations of the grid with and without a complete run.
    """

    setting: PaperSetting
    runs: tuple[Run, ...]
    paired: tuple[Run, ...]
    quick: bool
    matching: int
    missing: int

    @property
    def complete(self) -> bool:
        """Whether every combination has a run."""
        return self.missing == 0


def match_runs(item: Item, runs: Sequence[Run]) -> list[SettingRuns]:
    """Runs of each setting of an item: of the paper's variant if complete, else of the more complete variant.

    A run belongs to a combination of the item's grid if its experiment is the preset's with these values, except for
    seed, rounds, keep, threads and engine (unless the grid names them). Unfinished runs do not count.
    """
    free, finished = _free(item), [run for run in runs if run.committed >= run.experiment.rounds]
    by_identity = grouped(finished, lambda run: _identity(run.experiment, run.experiment.init is not None, free))
    return [
        _better([_complete_runs(item, setting, quick, by_identity, free) for quick in quicks])
        for setting in item.settings
        for quicks in [(False, True) if setting.quick else (False,)]
    ]


def stand_ins(item: Item, runs: Sequence[Run]) -> tuple[Run, ...]:
    """Runs that stand in for those of an item: of its methods, in the settings of `Item.measured`."""
    if not item.measured:
        return ()
    entries = campaigns.load(plans()["reproduction"]).of_items(names=item.measured).items
    identities = {unit.identity for entry in entries for same_seed in entry.units for unit in same_seed}
    labels = {experiment.method.label for experiment in combinations(item, item.settings[0], quick=False)}
    return tuple(run for run in runs if run.label in labels and campaigns.identity(run.experiment) in identities)


def setting_of(item: Item, run: Run) -> PaperSetting:
    """The setting of an item that a run stands in for: that with its data set, else the first."""
    data = str(run.experiment.task.dataset)
    same = (entry for entry in item.settings if combinations(item, entry, quick=False)[0].task.dataset == data)
    return next(same, item.settings[0])


def reservation(item: Item, runs: Sequence[Run]) -> str:
    """In whose setting runs are that are drawn for an item, and in what it differs from the paper's; else empty.

    Of data sets, models and numbers of rounds those are named that no run of the paper has. Quick variants, which
    differ in more, are left out.
    """
    matched = {run.folder: variant.quick for variant in match_runs(item, runs) for run in variant.runs}
    differing = ", ".join(_departures(item, [run for run in runs if not matched.get(run.folder)]))
    if all(run.folder in matched for run in runs):
        return differing
    setting = f"in the setting of {', '.join(item.measured)} (fedscape reproduce --list), not in the paper's"
    return f"{setting}: {differing}" if differing else setting


def _departures(item: Item, runs: Sequence[Run]) -> list[str]:
    every = [combination for setting in item.settings for combination in combinations(item, setting, quick=False)]
    theirs, texts = list(map(_named, every)), []
    for unit in theirs[0]:
        usual = dict.fromkeys(names[unit] for names in theirs)
        others = dict.fromkeys(_named(run.experiment)[unit] for run in runs)
        if strange := [name for name in others if name not in usual]:
            texts.append(f"{', '.join(strange)}{unit} in place of {', '.join(usual)}".replace("_", " "))
    return texts


def _named(experiment: Experiment) -> dict[str, str]:
    """What is compared with the paper's runs, by the word behind its value."""
    return {
        "": str(experiment.task.dataset),
        " as model": str(experiment.task.model),
        " rounds": str(experiment.rounds),
    }


def commands(item: Item, setting: PaperSetting, *, quick: bool, runs: str | Path = "runs") -> list[str]:
    """The command lines that train every run of a setting; runs on disk are not trained again."""
    preset = setting.quick if quick and setting.quick else setting.experiment
    settings = setting.overrides(quick=quick)
    more = ["--set", *settings] if settings else []
    lines = [setting.prepare] if setting.prepare and setting.started(quick=quick) else []
    for crossed in item.grids(quick=quick):
        swept = [f"{name}={_listed(values)}" for name, values in crossed.items()]
        words = ["sweep", preset, "--grid", *swept] if swept else ["train", preset]
        lines.append(shlex.join(["fedscape", *words, *more, "--runs", str(runs)]))
    return lines


def combinations(item: Item, setting: PaperSetting, *, quick: bool) -> list[Experiment]:
    """The experiments of a setting, one for each combination of its grids; checkpoints to start from are left out."""
    preset = setting.quick if quick and setting.quick else setting.experiment
    settings = tuple(text for text in setting.overrides(quick=quick) if not text.startswith("init"))
    crossed = [
        dict(zip(grid, values, strict=True)) for grid in item.grids(quick=quick) for values in product(*grid.values())
    ]
    return [_read(preset, settings, json.dumps(values)) for values in crossed]


def _free(item: Item) -> tuple[str, ...]:
    """Settings in which runs of an item may differ: FREE without those that its grids or settings name."""
    crossed = {name for grid in (*item.grid, *(item.quick_grid or ())) for name in grid}
    keys = {text.partition("=")[0] for setting in item.settings for text in (*setting.set, *(setting.quick_set or ()))}
    return tuple(name for name in FREE if name not in {key.strip().partition(".")[0] for key in crossed | keys})


def _complete_runs(
    item: Item, setting: PaperSetting, quick: bool, by_identity: dict[str, list[Run]], free: tuple[str, ...]
) -> SettingRuns:
    started = setting.started(quick=quick)
    experiments = combinations(item, setting, quick=quick)
    identities = {_identity(experiment, started, free): None for experiment in experiments}
    groups = [by_identity[key] for key in identities if key in by_identity]
    seeds = [{run.experiment.seed for run in runs} for runs in groups]
    shared = set.intersection(*seeds) if seeds else set()
    every = tuple(run for runs in groups for run in runs)
    paired = tuple(run for run in every if run.experiment.seed in shared or not shared)
    return SettingRuns(setting, every, paired, quick, len(groups), len(identities) - len(groups))


def _better(variants: Sequence[SettingRuns]) -> SettingRuns:
    """The first complete variant, else of those with runs that with fewest missing, the quick one among equals."""
    fullest = min(variants[::-1], key=lambda variant: (not variant.matching, variant.missing))
    return next((variant for variant in variants if variant.complete), fullest)


def _identity(experiment: Experiment, started: bool, free: Sequence[str]) -> str:
    """Everything that two runs of one combination share, as text; of a checkpoint only whether there is one."""
    content = {name: value for name, value in experiment.resolved().items() if name not in (*free, "init")}
    return json.dumps({**content, "started": started}, sort_keys=True)


@lru_cache(maxsize=4096)
def _read(preset: str, settings: tuple[str, ...], values: str) -> Experiment:
    return read(preset, *settings, **{name.replace(".", "__"): value for name, value in json.loads(values).items()})


def _listed(values: Sequence[Any]) -> str:
    """Values as `fedscape sweep --grid` reads them: plain where they are words and numbers, else as TOML."""
    if not all(isinstance(value, str | int | float) for value in values):
        return ",".join(map(_toml, values))
    return ",".join(value if isinstance(value, str) else _toml(value) for value in values)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(inner)}" for name, inner in value.items()) + "}"
    return "[" + ", ".join(map(_toml, value)) + "]" if isinstance(value, list) else json.dumps(value)
