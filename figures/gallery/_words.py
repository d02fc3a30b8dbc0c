"""Settings of a run in words, for titles."""

from __future__ import annotations

from drift import named
from drift.run import Run


def partition_of(run: Run) -> str:
    """The run's partition, like "Dir(0.1)", "2 shards a client" or "period drift, Dir(0.01)"."""
    partition = run.experiment.clients.partition
    options = partition.model_dump(exclude_none=True)
    spread = f"Dir({options['concentration']:g})" if "concentration" in options else ""
    if (setting := options.get("setting")) is not None:
        return {"iid": "iid", "both": f"both drifts, {spread}"}.get(setting, f"{setting} drift, {spread}")
    if "shards" in options:
        return f"{options['shards']} shards a client"
    return spread or named.name(partition)
