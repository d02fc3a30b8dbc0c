"""Settings of a run in words, for titles."""

from drift.partitions import Partitioner
from drift.plugins import tables
from drift.plugins.reserved_names import UNKNOWN
from drift.runs.run import Run


def partition_label(run: Run) -> str:
    """The run's partition, like "Dir(0.1)", "2 shards per client" or "period drift, Dir(0.01)"."""
    text = describe_partition(run.experiment.clients.partition)
    return f"partition {text}" if text == UNKNOWN else text


def describe_partition(partition: Partitioner) -> str:
    """A partition, like "Dir(0.1)", "2 shards per client", "pachinko, Dir(0.1)" or "domains, 2 shards per client"."""
    name = tables.name(partition).replace("_", " ")
    options = partition.model_dump(exclude_none=True)
    spread = f"Dir({options['concentration']:g})" if "concentration" in options else ""
    if (setting := options.get("setting")) is not None:
        return {"iid": "iid", "both": f"both drifts, {spread}"}.get(setting, f"{setting} drift, {spread}")
    if "shards" in options:
        return f"{options['shards']} shards per client"
    if name == "class quantity":
        return f"{options['classes']} classes per client"
    if name == "hybrid dirichlet":
        return f"hybrid Dir({options['even']:g}) and Dir({options['skewed']:g})"
    if isinstance(base := getattr(partition, "base", None), Partitioner):
        return f"{name}, {describe_partition(base)}"
    if name == "flwr":
        return options["partitioner"]
    return spread if name == "dirichlet" else ", ".join(filter(None, (name, spread)))
