"""Numbers over rounds of the runs of an explorer, recorded ones and those of analyses of the record; their curves."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import xarray as xr

from drift.analyses.rounds.numbers import OF_RECORD, Analysis, quantity
from drift.analyses.rounds.numbers import number as number_of
from drift.runs.growing_run import GrowingRun
from figures.explore.record.run_rows import what_differs
from figures.selection.groups import groups
from figures.selection.lines import Line, differences
from figures.selection.run_selection import join_names

if TYPE_CHECKING:
    from figures.explore.work.open_runs import OpenRuns

FIRST = ("accuracy", "loss", "error", "local_loss")
"""Recorded numbers that are offered first."""


def number_names(runs: Iterable[GrowingRun]) -> dict[str, dict[str, str]]:
    """Numbers that can be shown of runs, as name by text, in two groups: "recorded" and "from the record"."""
    recorded = {name for run in runs for name in run.number_names() if name not in OF_RECORD}
    ordered = [*(name for name in FIRST if name in recorded), *sorted(recorded - set(FIRST))]
    return {
        "recorded": {quantity(name).words: name for name in ordered},
        "from the record": {quantity(name).words: name for name in OF_RECORD},
    }


def lines(runs: Mapping[str, GrowingRun], name: str) -> tuple[list[Line], list[str]]:
    """A line per run that has the number, in the order of groups, and a sentence about those that have not.

    Args:
        runs: Runs with a complete round, by name.
        name: Of the number, as `number` takes it.
    """
    names = {run.folder: called for called, run in runs.items()}
    shown, absent = [], []
    for group, members in groups(runs.values()).items() if runs else ():
        for run in members:
            called = names[run.folder]
            try:
                shown.append(Line(called, group, run, number(runs[called], name)))
            except LookupError:
                absent.append(called)
    text = name.replace("_", " ")
    return shown, [f"{join_names(absent)} recorded no {text}."] if absent else []


def number(run: GrowingRun, name: str) -> xr.DataArray:
    """As `drift.analyses.rounds.numbers.number`, by results that are computed once while the run does not grow."""
    return of_record(run, OF_RECORD[name])[name] if name in OF_RECORD else number_of(run, name)


def of_record(run: GrowingRun, analysis: Analysis) -> xr.Dataset:
    """Result of an analysis of the record with its default options; computed again where the run has grown."""
    with _LOCK:
        stored = _RESULTS.setdefault(run, {}).get(analysis)
    if stored is None or stored[0] != run.head:
        stored = run.head, analysis(run)
        with _LOCK:
            _RESULTS[run][analysis] = stored
    return stored[1]


_RESULTS: WeakKeyDictionary[GrowingRun, dict[Analysis, tuple[str, xr.Dataset]]] = WeakKeyDictionary()
_LOCK = Lock()


def ready(run: GrowingRun, name: str) -> bool:
    """Whether a number of a run is known without an analysis that takes a moment."""
    if name not in OF_RECORD:
        return True
    with _LOCK:
        stored = _RESULTS.get(run, {}).get(OF_RECORD[name])
    return stored is not None and stored[0] == run.head


def recorded_runs(
    runs: OpenRuns, names: Iterable[str], *, full: bool = True
) -> tuple[dict[str, GrowingRun], list[str]]:
    """The runs of these names that have a round, and a line for each that has none yet; problems have their own line.

    Args:
        runs: The open runs.
        names: Names of some of them; others are left out.
        full: Whether all of their rounds are read; else those that are.
    """
    usable, lines = {}, []
    for name in names:
        if name not in runs.names:
            continue
        run = runs.recorded(name) if full else runs.described(name)
        if run.rounds() and _described(run):
            usable[name] = run
        elif not runs.problem(name):
            lines.append(f"{name} has no complete round yet; it appears here when it has one.")
    return usable, lines


def _described(run: GrowingRun) -> bool:
    try:
        return bool(run.experiment)
    except (LookupError, ValueError):
        return False


@dataclass(frozen=True)
class Curves:
    """What is shown: lines, the names of their groups before a comparison, numbers to choose from, and remarks.

    Where not all is read yet it is not `complete`.
    """

    shown: list[Line]
    groups: list[str]
    numbers: dict[str, dict[str, str]]
    differing: str
    remarks: list[str]
    compared: bool
    complete: bool = True


def curves(runs: OpenRuns, names: list[str], quantity: str, reference: str, seconds: float | None = None) -> Curves:
    """Read and compare what is shown; for a thread.

    Args:
        runs: The open runs.
        names: Names of the selected runs.
        quantity: Name of the number.
        reference: Name of the group that others are compared with; empty for none.
        seconds: About so long rounds are read; what is not read then is left out. None: all are read.
    """
    ends = time.monotonic() + (seconds or 0)
    complete = seconds is None or runs.read_ahead(names, seconds)
    usable, remarks = recorded_runs(runs, names, full=seconds is None)
    if seconds is not None:
        waiting = [name for name in usable if not ready(usable[name], quantity)]
        while waiting and complete:  # an analysis of rounds that are not all read would be thrown away
            lines({waiting[0]: usable[waiting[0]]}, quantity)
            del waiting[0]
            complete = not waiting or time.monotonic() < ends
        usable = {name: run for name, run in usable.items() if name not in waiting}
    if not complete:
        remarks = [READING, *remarks]
    shown, absent = lines(usable, quantity)
    known = list(dict.fromkeys(line.group for line in shown))
    compared = bool(reference)
    try:
        shown, more = differences(shown, reference)
    except LookupError as reason:
        compared, more = False, [str(reason)]
    remarks = [*remarks, *absent, *more]
    numbers, differing = number_names(usable.values()), what_differs(list(usable.values())) if complete else ""
    return Curves(shown, known, numbers, differing, remarks, compared, complete)


READING = "Reading the runs; the curves are what is read so far."
