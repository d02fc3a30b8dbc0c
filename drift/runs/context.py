"""How analyses of a run are computed: from which data, with which metrics, by which processes, with which progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from drift.runs.own_metrics import Measure
from drift.runs.own_task import Given
from landscape.results.progress import Progress

if TYPE_CHECKING:
    from landscape.sweep.threads import PointPool

Announce = Callable[[str], None]
"""(line of text) -> None."""


@dataclass(frozen=True)
class Context:
    """What a user adds to a run on opening it; nothing of it is recorded.

    Args:
        data: Folder of the datasets; None: as `landscape.datasets` finds them.
        metrics: Metrics of the user's own, which planes and lines have beside those of the task.
        user_task: A task in place of the recorded one, as a run needs that was recorded without its data.
        pool: Other processes that share the points of planes and lines, as `drift.simulation.sweep_points.crew` makes
            them.
        progress: Called with how much of an analysis is done and with all of it, in points, rounds or clients.
        announce: Called with one line that says what an expensive analysis will cost, before it starts.
    """

    data: Path | None = None
    metrics: tuple[Measure, ...] = ()
    user_task: Given | None = field(default=None, compare=False, repr=False)
    pool: PointPool | None = field(default=None, compare=False, repr=False)
    progress: Progress | None = field(default=None, compare=False, repr=False)
    announce: Announce | None = field(default=None, compare=False, repr=False)
