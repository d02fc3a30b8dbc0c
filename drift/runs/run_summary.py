"""What lists of runs show of one: read from its description and headers, without importing torch or any method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.runs.metric_names import stated, under_usual
from drift.store import chain, links, round_headers
from drift.store.keep import Keep
from drift.store.numpy_files import read_json
from drift.store.paths import STATE, round_path
from drift.store.round_headers import is_intact, read_small_arrays
from landscape import plugins

if TYPE_CHECKING:
    from drift.runs.run import Run

_TRAINED_HERE = ("hash", "label", "fingerprint")
"""What run.json states of a run that this package trained."""


PACKAGES = ("landscape.datasets", "landscape.models", "drift.partitions", "drift.methods")
"""Packages whose plug-ins the settings of a run name."""


@dataclass(frozen=True)
class RunSummary:
    """A run in plain values.

    Args:
        folder: Folder of the run.
        about: Content of run.json.
        label, data_name, model, partition: Names, as `drift.runs.run.Run` has them.
        seed: The seed; None where it is not known.
        rounds: Number of rounds of the whole run.
        done: Numbers of the complete rounds, ascending.
        clients, globals: Those that store client models, and global models.
        metrics: Numbers of the last complete round.
    """

    folder: Path
    about: Mapping[str, Any]
    label: str
    data_name: str
    model: str
    partition: str
    seed: int | None
    rounds: int
    done: list[int]
    clients: list[int]
    globals: list[int]
    metrics: dict[str, float]


def summary(folder: Path, *, check: bool, chained: bool = True) -> RunSummary | None:
    """The summary of a run that this package trained with built-in plug-ins, whose files agree with each other.

    Its settings were accepted when they were written; here only the names in them are looked up.

    Args:
        folder: Folder of the run.
        check: Also compare state and last round with their digests.
        chained: With it, also every round with the one before it.

    Returns:
        None where code must be asked, or anything is not as it should be: opening the run says what.
    """
    try:
        about = _description(folder)
        experiment = about["experiment"]
        done = _complete(folder, links.identity(about), chained=check and chained)
        files = [round_path(folder, done[-1]), folder / STATE] if done else []
        if check and not all(is_intact(path) for path in files):
            return None
        task, partition, method = experiment["task"], experiment["clients"]["partition"]["name"], experiment["method"]
        named = [*zip(PACKAGES, (task["dataset"], task["model"], partition, method["name"]), strict=True)]
        named += [(PACKAGES[-1], method["base"]["name"])] if "base" in method else []
        if any(str(name).replace("-", "_") not in plugins.names(package) for package, name in named):
            return None
        rounds, keep = experiment["rounds"], Keep(**experiment["keep"])
        return RunSummary(
            folder=folder,
            about=about,
            label=about["label"],
            data_name=task["dataset"],
            model=task["model"],
            partition=partition,
            seed=experiment["seed"],
            rounds=rounds,
            done=done,
            clients=[index for index in done if keep.keeps_clients(index, rounds)],
            globals=[index for index in done if keep.keeps_globals(index, rounds)],
            metrics=under_usual(_metrics(folder, done[-1]), stated()) if done else {},
        )
    except (LookupError, ValueError, OSError, TypeError, AttributeError):
        return None


def opened_summary(run: Run) -> RunSummary:
    """The summary of an open run, whatever trained it.

    Raises:
        LookupError: If a file of it is damaged.
    """
    from drift.plugins import tables

    experiment, done = run.experiment, run.rounds()
    return RunSummary(
        folder=run.folder,
        about=run.about,
        label=run.label,
        data_name=run.data_name,
        model=run.model_name,
        partition=tables.name(experiment.clients.partition),
        seed=run.seed,
        rounds=experiment.rounds,
        done=done,
        clients=run.kept("clients"),
        globals=run.kept("globals"),
        metrics=run.round(-1).metrics if done else {},
    )


def _description(folder: Path) -> dict[str, Any]:
    """Content of run.json, if this package trained the run."""
    about = read_json(folder / "run.json")
    if "run" in about or "imported" in about or not {*_TRAINED_HERE} <= {*about}:
        raise ValueError("the run was not trained here")
    if not isinstance(about["experiment"]["rounds"], int) or not isinstance(about["experiment"]["seed"], int):
        raise TypeError("rounds and seed are whole numbers")
    return about


def _complete(folder: Path, run: str, *, chained: bool) -> list[int]:
    """Numbers of the rounds before the commit point, ascending; they, or the last one, are of this run and its state.

    Raises:
        LookupError: If one is missing or not as it should be.
    """
    following = round_headers.following_round(folder)
    if chained:
        (known := chain.read(folder)).require(*known.wrong)
    elif following:
        state, last = round_headers.read_state(folder), read_small_arrays(round_path(folder, following - 1))
        if state.foreign(run) or last.foreign(run) or last.misplaced(following - 1) or state.broken(last.link):
            raise LookupError("the state does not follow from the last round")
    return round_headers.complete_rounds(folder, following, gaps=False)


def _metrics(folder: Path, index: int) -> dict[str, float]:
    arrays = read_small_arrays(round_path(folder, index)).arrays
    return {name.removeprefix("metric."): float(value) for name, value in arrays.items() if name.startswith("metric.")}
