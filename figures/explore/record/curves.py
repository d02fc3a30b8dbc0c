"""The curves of the selected runs, what can be chosen for them, and remarks; read little by little."""

from __future__ import annotations

import time
from dataclasses import dataclass

from figures.explore.record.run_rows import what_differs
from figures.explore.record.series import lines, number_names, ready, recorded_runs
from figures.explore.work.open_runs import OpenRuns
from figures.selection.lines import Line, differences


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
    usable, remarks = recorded_runs(runs, names, whole=seconds is None)
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
