"""What all pages of one explorer share: the open runs, the jobs, and the thread that watches the runs grow."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

try:
    from figures.explore.open_runs import OpenRuns
except ModuleNotFoundError:
    from figures.explore.open_runs_until import OpenRuns  # type: ignore[assignment]

EVERY = 0.5
"""Seconds between two looks at the folders."""


class Workspace:
    """Open runs, jobs and growth.

    Args:
        folders: Folders of runs, or folders that contain such folders.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self.runs = OpenRuns(folders)
        self._jobs: Any = None
        self._followers: list[Callable[[Any], None]] = []
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def jobs(self) -> Any:
        """The worker processes; started when first asked for."""
        if self._jobs is None:
            self._jobs = importlib.import_module("figures.explore.jobs").Jobs()
        return self._jobs

    def follow(self, follower: Callable[[Any], None]) -> Callable[[], None]:
        """Call a function, in another thread, with every change of the folders; returns what ends that."""
        self._followers.append(follower)
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="fedscape-growth", daemon=True)
            self._thread.start()
        return lambda: self._followers.remove(follower) if follower in self._followers else None

    def close(self) -> None:
        """Stop watching and end the jobs."""
        self._stopped.set()
        if self._jobs is not None:
            self._jobs.close()

    def _watch(self) -> None:
        while not self._stopped.wait(EVERY):
            changes = self.runs.poll()
            if changes.added or changes.grown or changes.gone or changes.problems:
                for follower in list(self._followers):
                    follower(changes)
