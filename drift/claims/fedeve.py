"""What claims of Shen et al. (FedEve) measure."""

from collections.abc import Sequence

from drift.claims.claim import Effects
from drift.claims.measures import accuracy
from drift.partitions.drift import Partition as DriftPartition
from drift.runs.run import Run


def between_drifts(runs: Sequence[Run], *, better: str, worse: str) -> Effects:
    """Accuracy of FedAvg under one drift setting minus that under another, by seed.

    Raises:
        LookupError: If no two runs differ in the drift setting alone.
    """
    groups: dict[tuple[str, int], dict[str, Run]] = {}
    for run in runs:
        partition = run.experiment.clients.partition
        if isinstance(partition, DriftPartition) and run.label == "fedavg":
            rest = run.experiment.resolved()
            rest["clients"]["partition"].pop("setting")
            groups.setdefault((repr(rest), run.experiment.seed), {})[partition.setting] = run
    effects = {
        seed: accuracy(group[better]) - accuracy(group[worse])
        for (_, seed), group in groups.items()
        if better in group and worse in group
    }
    if not effects:
        raise LookupError(f"no runs of fedavg under the drift settings {better!r} and {worse!r} among those given")
    return effects
