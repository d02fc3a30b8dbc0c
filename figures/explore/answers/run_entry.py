"""What the page knows of the runs of a group before their landscapes: curves, state and settings, from the record."""

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import xarray as xr

from drift.analyses.rounds.run_state import lost_from, recorded_losses
from drift.runs.growing_run import GrowingRun
from drift.runs.metric_names import under_usual
from drift.runs.run import Run
from drift.simulation.compare import last_recorded, mean_words
from drift.store import files
from drift.store.round_headers import read_small_arrays
from figures.explore.work.messages import one_line
from figures.explore.work.open_runs import PROBLEMS
from figures.explore.work.record_numbers import known
from figures.looks import palette
from figures.page.configuration import shown
from figures.page.packed import finite
from figures.page.scene import LAST, curves, events, missing
from figures.page.shown_rounds import least_clients
from figures.selection.groups import settings
from figures.selection.identity import seed_text

PATIENCE, ROUNDS = 60.0, 5
"""Seconds, and times of the last round, after which a run without a new round counts as stopped."""


def entry_of(group: Sequence[Run], names: Mapping[Any, str], problem: Callable[[str], str]) -> dict[str, Any]:
    """Fields of a group's entry.

    Args:
        group: Runs that differ in their seed only, read so far (`GrowingRun.update`).
        names: Names of runs by folder.
        problem: Why a run of that name cannot be read further; "" if it can.

    Returns:
        key (the name of the first run), names (name and seed of each), identities (another one where another run took
        the place of one), accuracies, series, spread, events, note, able (rounds that can have a landscape, and damaged
        ones), damaged (a line for each of these), state (complete, growing, diverged, stopped, damaged), planned
        (rounds of the whole run), done (of each run, its last round and damaged ones) and text (all settings: name,
        value).
    """
    run = _growing(group[0])
    called = [names[member.folder] for member in group]
    numbers, on_disk = run.numbers(), _listed(run)
    damaged = {index: one_line(reason) for index, reason in run.damaged.items()}
    state, note, lost = _state(run, numbers, on_disk, problem(called[0]))
    of_record, absent = known(run), missing(run)
    coherence = of_record.get("coherence")
    return {
        "key": called[0],
        "names": [{"name": name, "seed": seed_text(member)} for name, member in zip(called, group, strict=True)],
        "identities": [member.identity for member in group],
        "accuracies": [finite(float(np.mean(_last_accuracies(member)[0] or [np.nan]))) for member in group],
        **curves(group, _number),
        "events": events(run, coherence, lost) if run.rounds() else [],
        "note": " ".join(filter(None, (note, absent, _behind(group)))),
        "able": [] if problem(called[0]) else able(run),
        "damaged": damaged,
        "state": state,
        "planned": run.experiment.rounds,
        "done": [[_listed(_growing(member))[-1:], [*_growing(member).damaged]] for member in group],
        "text": [(name, shown(value)) for name, value in settings(run).items()],
    }


def _behind(group: Sequence[Run]) -> str:
    """Which seeds of several have fewer rounds than others, whose accuracies are of other rounds therefore."""
    done = {seed_text(member): len(_listed(_growing(member))) for member in group}
    few = [f"seed {seed} has {count}" for seed, count in done.items() if count < max(done.values())]
    return f"Accuracy is of each seed's last rounds: {', '.join(few)} of {max(done.values())} rounds." if few else ""


def able(run: GrowingRun) -> list[int]:
    """Rounds that can have a landscape: on disk, read or not, and damaged ones, that kept clients enough; none without
    data. Sizes of cohorts are remembered."""
    rounds = [] if run.without_data else sorted({*run.listed_rounds(), *run.damaged})
    return [index for index in rounds if run.keeps(index, least=least_clients(run))]


def _number(run: Run, name: str) -> xr.DataArray | None:
    return known(record := _growing(run)).get(name, record.numbers().get(name))


def unread_entry(name: str, run: GrowingRun | None, problem: str) -> dict[str, Any]:
    """The entry of a run without a complete round, or of one that cannot be read."""
    known: dict[str, Any] = {"label": name, "colour": palette.colour(name), "seeds": [""], "planned": 0, "text": []}
    try:
        if run is not None:
            known = _settings(run)
    except PROBLEMS as reason:
        problem = problem or one_line(reason)
    if problem:
        state, note = "damaged", problem
    elif run is not None and _is_growing(run, 0.0):
        state, note = "growing", "No complete round yet; the first one appears here when it is done."
    else:
        state, note = "stopped", "It stopped before its first round was complete. Training it again begins anew."
    return {
        **known,
        "key": name,
        "rounds": [],
        "names": [{"name": name, "seed": known["seeds"][0]}],
        "accuracies": [None],
        "note": note,
        "able": [],
        "state": state,
    }


def _settings(run: GrowingRun) -> dict[str, Any]:
    return {
        "label": palette.label(run.label),
        "colour": palette.colour(run.label),
        "seeds": [seed_text(run)],
        "planned": run.experiment.rounds,
        "text": [(name, shown(value)) for name, value in settings(run).items()],
    }


def _state(run: GrowingRun, numbers: xr.Dataset, rounds: list[int], problem: str) -> tuple[str, str, int | None]:
    """State of a run, a line on it, and the round of the lowest loss of one that diverged."""
    if problem:
        return "damaged", problem, None
    if damaged := run.damaged:
        several = f"Rounds {', '.join(map(str, damaged))} are" if len(damaged) > 1 else f"Round {min(damaged)} is"
        return "damaged", f"{several} damaged; the others are shown.", None
    planned, lost = run.experiment.rounds, None
    if rounds and len(run.rounds()) == len(rounds):
        classes = len(run.about.get("classes", []))
        constant = math.log(classes) if classes > 1 and run.loss_units == "nats" else math.inf
        lost = lost_from(run, recorded_losses(run, numbers), constant)
    if lost is not None:
        lowest = f"its loss was lowest in round {lost}" if lost >= 0 else "none of its losses is finite"
        return "diverged", f"It diverged; {lowest}.", lost
    done = rounds[-1] + 1 if rounds else 0
    if done >= planned or run.about.get("imported"):
        return "complete", "", None
    seconds = float(np.nanmax(numbers.seconds.values[-ROUNDS:])) if "seconds" in numbers and rounds else 0.0
    if _is_growing(run, seconds):
        return "growing", "", None
    return "stopped", f"It stopped after {done} of {planned} rounds; fedscape train goes on with it.", None


def _is_growing(run: GrowingRun, seconds: float) -> bool:
    """Whether a file of the run was written lately, for rounds that take so long."""
    written = [stamp.written / 1e9 for stamp in run.stamp() if stamp is not None]
    return bool(written) and time.time() - max(written) < PATIENCE + ROUNDS * (seconds if seconds == seconds else 0)


def last_mean(runs: Sequence[Run]) -> str:
    """What the accuracy of entries is the mean of, in words."""
    return mean_words([(_listed(run), _last_accuracies(run)) for run in runs], LAST)


def _last_accuracies(run: Run) -> tuple[list[float], bool]:
    """Accuracies of the last rounds that have one, as `last_recorded` has them, also if these are not read yet.

    A damaged round has none: the run says so once it is read.
    """
    record = _growing(run)
    stamp = record.stamp()
    if (stored := _LATE.get(record)) is None or stored[0] != stamp:
        _LATE[record] = stored = stamp, last_recorded(_listed(record), partial(_accuracies, record), LAST)
    return stored[1]


def _accuracies(run: GrowingRun, rounds: Sequence[int]) -> list[float]:
    values = []
    for index in rounds:
        with contextlib.suppress(*PROBLEMS):
            values.append(_recorded(run, index).get("accuracy", np.nan))
    return [value for value in values if np.isfinite(value)]


def _listed(run: Run) -> list[int]:
    """Rounds in the folder; those that were read where the folder is damaged or vanishing."""
    try:
        return _growing(run).listed_rounds()
    except PROBLEMS:
        return run.rounds()


_LATE: WeakKeyDictionary[GrowingRun, tuple[Any, tuple[list[float], bool]]] = WeakKeyDictionary()


def _growing(run: Run) -> GrowingRun:
    assert isinstance(run, GrowingRun)  # noqa: S101 - for mypy
    return run


def _recorded(run: GrowingRun, index: int) -> Mapping[str, float]:
    return under_usual(read_small_arrays(files.round_path(run.folder, index)).numbers(), run.metric_names)
