"""One ask of a page: the runs it may read, the jobs it waits for, and what it says meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from figures.explore.work.job import LongJob
from figures.explore.work.versions import round_version
from figures.explore.work.workspace import Workspace

if TYPE_CHECKING:
    from drift.runs.run import Run
    from figures.explore.answers.changed_scene import ChangedScene

EVERY = 0.2
"""Seconds between two messages on the progress of an ask."""


class Ask:
    """One ask.

    Args:
        workspace: Runs and jobs.
        scene: The scene of the page.
        tell: Sends something about it.
    """

    def __init__(self, workspace: Workspace, scene: ChangedScene, tell: Callable[[dict[str, Any]], None]) -> None:
        self.runs, self.jobs, self.scene = workspace.runs, workspace.jobs, scene
        self._tell = tell
        self._cancelled = threading.Event()
        self._job: LongJob | None = None
        self._stepped = 0.0

    def rough(self, value: Any) -> None:
        """Send a first, rough value."""
        self._tell({"rough": value})

    def cancel(self) -> None:
        """Stop it and what works for it."""
        self._cancelled.set()
        if (job := self._job) is not None:
            job.cancel()

    def run(self, name: str, index: int | None = None) -> Run:
        """The run of that name, which has that round.

        Raises:
            LookupError: If there is none, or it has no such round.
        """
        if problem := self.runs.problem(name):
            raise LookupError(problem)
        run = self.runs.run(name)
        if index is not None:
            run.require_round(index)
        return run

    def quick(self, function: Callable[[Run, Any], Any], run: Run, item: Any, index: int, **options: Any) -> Any:
        """`function(run, item)` in the warm process, about a round of the run.

        Args:
            function: Of a module.
            run: The run.
            item: Its second argument.
            index: The round.
            **options: title and priority of `Jobs.quick`.

        Raises:
            LookupError: If the round is no longer the one that was asked about.
        """
        before = round_version(run, index)
        result = self._wait(self.jobs.quick, function, run, item, **options)
        if round_version(type(run)(run.folder), index) != before:
            raise LookupError(f"run {run.name} was replaced meanwhile; ask again.")
        return result

    def long(self, function: Callable[..., Any], runs: Run | Sequence[Run], *arguments: Any, title: str) -> Any:
        """`function(runs, *arguments)` in a process of its own; the page sees how far it is."""
        return self._wait(self.jobs.long, function, runs, *arguments, title=title)

    def _step(self, job: LongJob) -> None:
        """Say how far a job with a title is, where that was not said a moment ago."""
        if not job.title or (now := time.monotonic()) - self._stepped < EVERY:
            return
        self._stepped = now
        self._tell({"progress": {"done": job.done, "total": job.total, "left": job.seconds_left, "words": job.title}})

    def _wait(self, begin: Callable[..., LongJob], *arguments: Any, **options: Any) -> Any:
        """The result of a job that `begin` starts, with these arguments.

        Raises:
            CancelledError: If the ask or the job was cancelled.
            Exception: What the job raised.
        """
        ended = threading.Event()
        self.require_wanted()
        self._job = job = begin(*arguments, on_progress=self._step, on_end=lambda job: ended.set(), **options)
        if self._cancelled.is_set():
            job.cancel()
        ended.wait()
        self._job = None
        if job.error is not None:
            raise job.error
        if job.state == "cancelled":
            raise CancelledError
        return job.result

    def require_wanted(self) -> None:
        """End an ask that nobody waits for.

        Raises:
            CancelledError: If it was cancelled.
        """
        if self._cancelled.is_set():
            raise CancelledError
