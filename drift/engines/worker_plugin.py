"""What brings a run's data to every worker of a Dask scheduler once, also to those that come later."""

from __future__ import annotations

from typing import Any

from distributed import WorkerPlugin

from drift.engines.cluster import WORKER_DATA, Serialized
from landscape.sweep.memory import keep_memory


class WorkerDataPlugin(WorkerPlugin):
    """Has a worker hold a packed `drift.engines.pure.WorkerData` under the run's name."""

    idempotent = False

    def __init__(self, run: str, text: bytes) -> None:
        self.run, self.text = run, text

    def setup(self, worker: Any) -> None:
        """When a worker begins, or when the run does."""
        keep_memory()
        WORKER_DATA[self.run] = Serialized(self.text)

    def teardown(self, worker: Any) -> None:
        """When the run ends."""
        WORKER_DATA.pop(self.run, None)
