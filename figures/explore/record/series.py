"""Numbers over rounds of the runs of an explorer: recorded ones, and those of analyses of the record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import xarray as xr

from drift.analyses.rounds.numbers import OF_RECORD
from drift.runs.growing_run import GrowingRun
from drift.runs.metrics import number_attributes

if TYPE_CHECKING:
    from figures.explore.work.open_runs import OpenRuns

Analysis = Callable[..., xr.Dataset]


@dataclass(frozen=True)
class Derived:
    """A number that follows from the record of a round.

    Args:
        text: How it is called.
        log: Whether its axis is logarithmic.
        zero: Whether zero is marked.
    """

    text: str
    log: bool = False
    zero: bool = False


DERIVED = {
    "client_variance": Derived("client-drift variance", log=True),
    "change_variance": Derived("update change", log=True),
    "change_share": Derived("update change in the sum of both variances"),
    "gain": Derived("Kalman gain"),
    "coherence": Derived("local gradient coherence", zero=True),
    "mean_cosine": Derived("mean cosine between client updates", zero=True),
    "locality": Derived("locality: largest distance of a client to the mean"),
    "mean_distance": Derived("mean distance of the clients to their mean"),
    "update_norm_mean": Derived("mean norm of the client updates"),
    "mean_update_norm": Derived("norm of the mean client update"),
    "step_norm": Derived("norm of the global step"),
    "end_norm": Derived("norm of the global model"),
    "gamma": Derived("shrinking factor gamma"),
    "ratio": Derived("balance ratio of optimisation to regularisation", log=True),
}
"""How the numbers of `drift.analyses.rounds.numbers.OF_RECORD` are shown."""

FIRST = ("accuracy", "loss", "error", "local_loss")
"""Recorded numbers that are offered first."""


def number_names(runs: Iterable[GrowingRun]) -> dict[str, dict[str, str]]:
    """Numbers that can be shown of runs, as name by text, in two groups: "recorded" and "from the record"."""
    recorded = {name for run in runs for name in run.number_names() if name not in OF_RECORD}
    ordered = [*(name for name in FIRST if name in recorded), *sorted(recorded - set(FIRST))]
    return {
        "recorded": {str(number_attributes(name)["long_name"]): name for name in ordered},
        "from the record": {derived.text: name for name, derived in DERIVED.items()},
    }


def number(run: GrowingRun, name: str) -> xr.DataArray:
    """A number of every round of a run, over `round`.

    Raises:
        LookupError: If the run has no such number.
    """
    if name in OF_RECORD:
        return of_record(run, OF_RECORD[name])[name]
    numbers = run.numbers()
    if name not in numbers:
        raise LookupError(f"{run.name} has no {name.replace('_', ' ')}")
    return numbers[name]


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
    runs: OpenRuns, names: Iterable[str], *, whole: bool = True
) -> tuple[dict[str, GrowingRun], list[str]]:
    """The runs of these names that have a round, and a line for each that has none yet; problems have their own line.

    Args:
        runs: The open runs.
        names: Names of some of them; others are left out.
        whole: Whether all of their rounds are read; else those that are.
    """
    usable, lines = {}, []
    for name in names:
        if name not in runs.names:
            continue
        run = runs.recorded(name) if whole else runs.described(name)
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
