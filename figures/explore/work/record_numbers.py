"""Numbers over rounds of runs as far as they are read: recorded ones, and those of analyses of the record."""

from threading import Lock
from weakref import WeakKeyDictionary

import xarray as xr

from drift.analyses.rounds.numbers import OF_RECORD, Analysis
from drift.analyses.rounds.numbers import number as number_of
from drift.runs.growing_run import GrowingRun

_RESULTS: WeakKeyDictionary[GrowingRun, dict[Analysis, tuple[str, xr.Dataset]]] = WeakKeyDictionary()
_LOCK = Lock()


def number(run: GrowingRun, name: str) -> xr.DataArray:
    """As `drift.analyses.rounds.numbers.number`; an analysis is computed once while the run does not grow.

    Raises:
        LookupError: If the run has no such number.
    """
    if name not in OF_RECORD:
        return number_of(run, name)
    analysis, now = OF_RECORD[name], run.head
    with _LOCK:
        head, stored = _RESULTS.get(run, {}).get(analysis, (None, None))
    if stored is None or head != now:
        stored = analysis(run)
        with _LOCK:
            _RESULTS.setdefault(run, {})[analysis] = now, stored
    return stored[name]


def known(run: GrowingRun) -> dict[str, xr.DataArray]:
    """Numbers of the record that were computed of the run as it is now."""
    with _LOCK:
        stored = list(_RESULTS.get(run, {}).values())
    return {str(name): ds[name] for head, ds in stored if head == run.head for name in ds if name in OF_RECORD}
