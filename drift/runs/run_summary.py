"""What lists of runs show of one: read from its description and headers, without importing torch or any method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.runs.metric_names import stated, under_usual
from drift.store import links, round_headers
from drift.store.keep import Keep
from drift.store.numpy_files import read_json
from drift.store.paths import STATE, require_inside, round_path
from drift.store.round_headers import is_whole, read_small_arrays
from landscape import plugins
from landscape.plugins import outside

if TYPE_CHECKING:
    from drift.runs.run import Run

_TRAINED_HERE = ("hash", "corrections", "fingerprint")
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


def summary(folder: Path, *, whole: bool, chained: bool = True) -> RunSummary | None:
    """The summary of a run that this package trained with built-in plug-ins, whose files agree with each other.

    Its settings were accepted when they were written; here only the names in them are looked up.

    Args:
        folder: Folder of the run.
        whole: Also compare state and last round with their digests.
        chained: With it, also every round with the one before it.

    Returns:
        None where code must be asked, or anything is not as it should be: opening the run says what.
    """
    try:
        about = _description(folder)
        experiment = about["experiment"]
        label = _label(experiment["method"], int(about["corrections"]))
        done = _complete(folder, links.identity(about), chained=whole and chained)
        files = [round_path(folder, done[-1]), folder / STATE] if done else []
        if label is None or (whole and not all(is_whole(path) for path in files)):
            return None
        task, partition = experiment["task"], experiment["clients"]["partition"]["name"]
        for package, name in zip(PACKAGES[:3], (task["dataset"], task["model"], partition), strict=True):
            _require_known(package, name)
        rounds, keep = experiment["rounds"], Keep(**experiment["keep"])
        return RunSummary(
            folder=folder,
            about=about,
            label=label,
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
    path = folder / "run.json"
    require_inside(path, folder)
    about = read_json(path)
    if "run" in about or "imported" in about or not {*_TRAINED_HERE} <= {*about}:
        raise ValueError("the run was not trained here")
    if not isinstance(about["experiment"]["rounds"], int) or not isinstance(about["experiment"]["seed"], int):
        raise TypeError("rounds and seed are whole numbers")
    return about


def _label(method: Mapping[str, Any], corrected: int) -> str | None:
    """Label of a method by its settings, as its class has it; None where the class must be asked.

    That is so for code from outside, bundles, and runs from before a correction of the method.
    """
    name, base = method["name"], method.get("base")
    if outside.is_outside(name) or method.get("like") is not None:
        return None
    _require_known("drift.methods", name)
    nested = base if isinstance(base, Mapping) else None
    corrections = plugins.constant("drift.methods", name if nested is None else nested["name"], "corrections") or ()
    if len(corrections) > corrected:
        return None
    variant = method.get("variant", "joint")
    own = f"{name}{'' if variant == 'joint' else f'-{variant}'}{'' if method.get('feedback', True) else '-no_feedback'}"
    if nested is None:
        return own
    below = _label(nested, corrected)
    return below and (own if below == "fedavg" else f"{below}+{own}")


def _require_known(package: str, name: str) -> None:
    if name.replace("-", "_") not in plugins.names(package):
        raise ValueError(f"{package} has no {name!r}")


def _complete(folder: Path, run: str, *, chained: bool) -> list[int]:
    """Numbers of the rounds before the commit point, ascending; all are of this run, and follow each other.

    Raises:
        ValueError: If they are not, or do not say it.
    """
    if round_headers.following_round(folder) == 0:
        return []
    state = round_headers.read_state(folder)
    if state.run != run:
        raise ValueError("the state is not of this run")
    numbers = [index for index in round_headers.round_numbers(folder) if index < state.index]
    if numbers != list(range(state.index)):
        raise ValueError("a round is missing")
    headers = [round_headers.read_round(folder, index) for index in (numbers if chained else numbers[-1:])]
    before = "" if chained or not headers or headers[0] is None else headers[0].before
    for header in (*headers, state):
        if header is None or header.run != run or header.before != before:
            raise ValueError("a round does not follow from the round before it")
        before = header.link if header is not state else ""
    return numbers


def _metrics(folder: Path, index: int) -> dict[str, float]:
    arrays = read_small_arrays(round_path(folder, index)).arrays
    return {name.removeprefix("metric."): float(value) for name, value in arrays.items() if name.startswith("metric.")}
