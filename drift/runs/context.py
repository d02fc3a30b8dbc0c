"""How analyses of a run are computed: data, metrics, processes and progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from drift.runs.user_task import UserMetric, UserTask
from landscape.results.progress import Progress, with_progress

if TYPE_CHECKING:
    from landscape.sweep.threads import PointPool

Item = TypeVar("Item")

Announce = Callable[[str], None]
"""(line of text) -> None."""


@dataclass(frozen=True)
class Context:
    """Settings of the user who opens a run; they are not recorded.

    Args:
        data: Folder of the datasets; None: as `landscape.datasets` finds them.
        metric_names: Recorded names of numbers by usual name, such as {"accuracy": "test_acc"}.
        metrics: Further metrics for planes and lines.
        user_task: A task that replaces the recorded one; a run that was recorded without its data needs it.
        pool: Other processes that share the points of planes and lines, as `drift.simulation.sweep_points.crew` makes
            them.
        progress: Called with the finished and the total number of points, rounds or clients of an analysis.
        announce: Called with one line on the cost of an expensive analysis, before it starts.
        store: Whether results are stored in the folder of the run; else they are computed every time.
    """

    data: Path | None = None
    metric_names: Mapping[str, str] = field(default_factory=dict, hash=False)
    metrics: tuple[UserMetric, ...] = ()
    user_task: UserTask | None = field(default=None, compare=False, repr=False)
    pool: PointPool | None = field(default=None, compare=False, repr=False)
    progress: Progress | None = field(default=None, compare=False, repr=False)
    announce: Announce | None = field(default=None, compare=False, repr=False)
    store: bool = True

    def track(self, items: Sequence[Item]) -> Iterator[Item]:
        """The items one by one; `progress` is called before the first and after each item."""
        return with_progress(items, self.progress)
