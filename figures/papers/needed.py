"""Which runs an item of a paper needs: those in a folder, and the commands that train the others."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.config.experiment import Experiment
from drift.config.load import read
from figures.papers.catalogue import Grid, Item, Setting

if TYPE_CHECKING:
    from drift.runs.run import Run

FREE = ("seed", "keep", "rounds", "threads", "engine", "device", "evaluate_every")
"""Settings in which a run of an item may differ from its preset, unless the item's grid names them."""


@dataclass(frozen=True)
class Found:
    """What a folder holds of one setting of an item.

    Args:
        setting: Of the item.
        runs: Runs that it needs and that are whole, in the order of the grid; of the seeds that every combination has,
            where there are such.
        quick: Whether they are of the quick variant.
        missing: How many combinations of the grid have no whole run.
    """

    setting: Setting
    runs: tuple[Run, ...]
    quick: bool
    missing: int

    @property
    def whole(self) -> bool:
        """Whether every combination has a run."""
        return self.missing == 0


def found(item: Item, runs: Sequence[Run]) -> list[Found]:
    """What `runs` hold of each setting of an item: the paper's where that is whole, else the fuller variant.

    A run belongs to a combination of the item's grid if its experiment is the preset's with these values, in all but
    seed, rounds, what is kept, threads and engine (unless the grid names them). Unfinished runs do not count.
    """
    known: dict[str, list[Run]] = {}
    free = _free(item)
    for run in runs:
        if run.committed >= run.experiment.rounds:
            known.setdefault(_identity(run.experiment, run.experiment.init is not None, free), []).append(run)
    return [
        _better([_held(item, setting, quick, known, free) for quick in _variants(setting)]) for setting in item.settings
    ]


def commands(item: Item, setting: Setting, *, quick: bool, runs: str | Path = "runs") -> list[str]:
    """The command lines that train every run of a setting; runs on disk are not trained again."""
    preset = setting.quick if quick and setting.quick else setting.experiment
    given = setting.given(quick=quick)
    more = ["--set", *given] if given else []
    lines = [setting.prepare] if setting.prepare and setting.started(quick=quick) else []
    for crossed in item.grids(quick=quick):
        parts = [f"{name}={_listed(values)}" for name, values in crossed.items()]
        words = ["sweep", preset, "--grid", *parts] if parts else ["train", preset]
        lines.append(shlex.join(["fedscape", *words, *more, "--runs", str(runs)]))
    return lines


def combinations(item: Item, setting: Setting, *, quick: bool) -> list[Experiment]:
    """The experiments of a setting, one for each combination of its grids; checkpoints to start from are left out."""
    preset = setting.quick if quick and setting.quick else setting.experiment
    given = tuple(text for text in setting.given(quick=quick) if not text.startswith("init"))
    return [
        _read(preset, given, json.dumps(chosen)) for crossed in item.grids(quick=quick) for chosen in _crossed(crossed)
    ]


def _variants(setting: Setting) -> list[bool]:
    return [False, True] if setting.quick else [False]


def _free(item: Item) -> tuple[str, ...]:
    """What runs of an item may differ in: FREE without what its grids or settings name."""
    crossed = {name for grid in (*item.grid, *(item.quick_grid or ())) for name in grid}
    given = {text.partition("=")[0] for one in item.settings for text in (*one.set, *(one.quick_set or ()))}
    return tuple(name for name in FREE if name not in {key.strip().partition(".")[0] for key in crossed | given})


def _held(item: Item, setting: Setting, quick: bool, known: dict[str, list[Run]], free: tuple[str, ...]) -> Found:
    started = setting.started(quick=quick)
    wanted = {_identity(one, started, free): None for one in combinations(item, setting, quick=quick)}
    held = [known.get(key, []) for key in wanted]
    shared = set.intersection(*({run.experiment.seed for run in runs} for runs in held))
    chosen = tuple(run for runs in held for run in runs if run.experiment.seed in shared or not shared)
    return Found(setting, chosen, quick, sum(key not in known for key in wanted))


def _better(variants: Sequence[Found]) -> Found:
    """The first whole one, else that with fewest runs missing, the quick one among equals."""
    return next((one for one in variants if one.whole), min(variants[::-1], key=lambda one: one.missing))


def _identity(experiment: Experiment, started: bool, free: Sequence[str]) -> str:
    """What two runs of one combination share, as text; of a checkpoint only whether they started from one."""
    content = {name: value for name, value in experiment.resolved().items() if name not in (*free, "init")}
    return json.dumps({**content, "started": started}, sort_keys=True)


def _crossed(grid: Grid) -> list[dict[str, Any]]:
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


@lru_cache(maxsize=4096)
def _read(preset: str, given: tuple[str, ...], chosen: str) -> Experiment:
    return read(preset, *given, **{name.replace(".", "__"): value for name, value in json.loads(chosen).items()})


def _listed(values: Sequence[Any]) -> str:
    """Values as `fedscape sweep --grid` reads them: plain where they are words and numbers, else as TOML."""
    if not all(isinstance(value, str | int | float) for value in values):
        return ",".join(map(_toml, values))
    return ",".join(value if isinstance(value, str) else _toml(value) for value in values)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
