"""Numbers of a run for experiment trackers: one file per tracker, its file name is its public name.

A tracker takes settings once and numbers per round; `track` sends those of a recorded run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from landscape import plugins
from landscape.results.parsed_text import dotted

if TYPE_CHECKING:
    from drift.runs.run import Run


class Tracker(Protocol):
    """Interface of a tracker, for finished runs and for training loops."""

    def begin(self, name: str, settings: Mapping[str, Any]) -> None:
        """Open a run of this name with its settings, dotted keys to text or numbers."""

    def log(self, index: int, numbers: Mapping[str, float]) -> None:
        """Add the finite numbers of round `index`."""

    def end(self) -> None:
        """Close the run; everything is on disk."""


def names() -> list[str]:
    """Names of the trackers."""
    return plugins.names("drift.trackers")


def tracker(name: str, folder: str | Path) -> Tracker:
    """The tracker called `name`, which writes into a folder; nothing goes over a network.

    Raises:
        ValueError: If there is none of that name.
        LookupError: If its package is not installed.
    """
    module = plugins.load("drift.trackers", name, "tracker")
    try:
        return module.Files(Path(folder))
    except ModuleNotFoundError as reason:
        raise LookupError(f"tracker {name} needs the package {reason.name}; pip install {module.PACKAGE}.") from reason


def track(run: Run, to: Tracker) -> None:
    """Send the settings of a run and the numbers of all its rounds (`export_table.table`) to a tracker."""
    from drift.analyses.rounds.export_table import table

    settings = {key: value for key, value in dotted(run.about["experiment"]).items() if value is not None}
    plain = (str, int, float)
    to.begin(run.name, {key: value if isinstance(value, plain) else str(value) for key, value in settings.items()})
    try:
        for index, row in table(run).iterrows():
            finite = {str(name): float(value) for name, value in row.items() if math.isfinite(value)}
            to.log(int(str(index)), finite)
    finally:
        to.end()
