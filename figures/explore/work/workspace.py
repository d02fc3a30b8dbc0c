"""What all pages of one explorer share: the open runs, the jobs, and the thread that watches both."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from drift.runs.run import Run
from figures.explore.work.jobs import Jobs
from figures.explore.work.open_runs import Changes, OpenRuns
from figures.explore.work.quick_calls import printed_errors

EVERY = 0.5
"""Seconds between two looks at the folders and the jobs."""

OnGrowth = Callable[[Changes], None]
OnWork = Callable[[], None]


class Workspace:
    """Open runs and jobs, watched in a thread as soon as somebody follows.

    Args:
        places: Folders of runs, folders that contain such folders, or runs.
        data: Folder of the datasets.
        task: Text that names a task for runs that were recorded without their data.
        jobs: Shared with others, who end them.

    Raises:
        LookupError: If a place is a file, or no place exists.
    """

    def __init__(
        self,
        inputs: Sequence[str | Path | Run],
        *,
        data: Path | None = None,
        task: str | None = None,
        jobs: Jobs | None = None,
    ) -> None:
        self.runs = OpenRuns(inputs, data=data, task=task)
        self.jobs = jobs or Jobs()
        self._shared = jobs is not None
        self._followers: list[tuple[OnGrowth, OnWork]] = []
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def follow(self, on_growth: OnGrowth, on_work: OnWork) -> Callable[[], None]:
        """Call functions, in another thread: when runs change, and twice a second; returns what ends that."""
        follower = (on_growth, on_work)
        self._followers.append(follower)
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="fedscape-explore", daemon=True)
            self._thread.start()
        return lambda: self._followers.remove(follower) if follower in self._followers else None

    def close(self) -> None:
        """Stop watching, and end all jobs but those that it shares."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        if not self._shared:
            self.jobs.close()

    def _watch(self) -> None:
        failed = False
        while not self._closed.wait(EVERY):
            anew, failed = failed, not failed  # what an error stopped is sent once more
            for _, on_work in list(self._followers):
                with printed_errors():
                    on_work()
            with printed_errors():
                changes = self.runs.poll() if self._followers else Changes()
                for on_growth, _ in list(self._followers):
                    if anew or changes != Changes():
                        on_growth(changes)
                failed = False
