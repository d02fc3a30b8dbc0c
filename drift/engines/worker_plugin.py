"""A Dask plugin that loads a run's data on every worker once, also on workers that start later."""

from __future__ import annotations

from typing import Any

from distributed import WorkerPlugin

from drift.engines.cluster import WORKER_DATA, Serialized
from landscape.sweep.memory import keep_memory


class WorkerDataPlugin(WorkerPlugin):
    """Stores a serialised `drift.engines.pure.WorkerData` on each worker under the run's name."""

    idempotent = False

    def __init__(self, run: str, text: bytes) -> None:
        self.run, self.text = run, text

    def setup(self, worker: Any) -> None:
        """Called when a worker or the run starts."""
        keep_memory()
        WORKER_DATA[self.run] = Serialized(self.text)

    def teardown(self, worker: Any) -> None:
        """Called when the run ends."""
        WORKER_DATA.pop(self.run, None)
