"""Claims of Shen et al. (FedEve)."""

from __future__ import annotations

from collections.abc import Sequence

from drift.analyses.rounds.labels import label_scatter
from drift.analyses.rounds.variance import drift_variances
from drift.claims.claim import Claim, Effects
from drift.claims.measures import accuracy
from drift.claims.select_runs import extreme_effects, pair_effects
from drift.partitions.drift import Partition as DriftPartition
from drift.runs.run import Run


def _gain(run: Run) -> float:
    return float(run.cached(drift_variances)["gain"].mean("round", skipna=True))


def _within(run: Run) -> float:
    return float(run.cached(label_scatter)["within_divergence"].mean("round", skipna=True))


def _between(run: Run) -> float:
    return float(run.cached(label_scatter)["between_divergence"].mean("round", skipna=True))


def _settings(runs: Sequence[Run], better: str, worse: str) -> Effects:
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


CONCENTRATION = "clients.partition.concentration"

CLAIMS = (
    Claim(
        "fedeve-accuracy",
        "FedEve, Table 1",
        "FedEve is more accurate than FedAvg",
        "accuracy of the last 10 rounds: FedEve minus FedAvg",
        "points",
        lambda runs: pair_effects(runs, "fedeve", "fedavg", lambda run, other: accuracy(run) - accuracy(other)),
    ),
    Claim(
        "fedeve-gain-heterogeneity",
        "FedEve, Fig. 4",
        "the Kalman gain grows as the concentration falls",
        "mean gain of FedEve: at the smallest concentration minus at the largest",
        "1",
        lambda runs: extreme_effects(runs, "fedeve", CONCENTRATION, _gain),
    ),
    Claim(
        "fedeve-within",
        "FedEve, Fig. 3a",
        "labels differ more between the clients of a round as the concentration falls",
        "divergence within rounds: at the smallest concentration minus at the largest",
        "nats",
        lambda runs: extreme_effects(runs, "fedavg", CONCENTRATION, _within),
    ),
    Claim(
        "fedeve-between",
        "FedEve, Fig. 3a",
        "labels differ more between rounds as the concentration falls",
        "divergence between rounds: at the smallest concentration minus at the largest",
        "nats",
        lambda runs: extreme_effects(runs, "fedavg", CONCENTRATION, _between),
    ),
    Claim(
        "fedeve-period-worse",
        "FedEve, Fig. 3b",
        "period drift alone costs more accuracy than client drift alone",
        "accuracy of FedAvg: client drift only minus period drift only",
        "points",
        lambda runs: _settings(runs, "client", "period"),
    ),
    Claim(
        "fedeve-both-worst",
        "FedEve, Fig. 3b",
        "both drifts together cost more accuracy than client drift alone",
        "accuracy of FedAvg: client drift only minus both",
        "points",
        lambda runs: _settings(runs, "client", "both"),
    ),
)
