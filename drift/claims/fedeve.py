"""Claims of Shen et al. (FedEve)."""

from __future__ import annotations

from collections.abc import Sequence

from drift.analyses.rounds.labels import label_scatter
from drift.analyses.rounds.variance import drift_variances
from drift.claims.claim import Claim, Effects
from drift.claims.measures import accuracy, round_mean
from drift.claims.select_runs import extreme_effects, extreme_pair_effects, pair_effects
from drift.partitions.drift import Partition as DriftPartition
from drift.runs.run import Run

_gain = round_mean(drift_variances, "gain")
_within = round_mean(label_scatter, "within_divergence")
_between = round_mean(label_scatter, "between_divergence")


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


def _ahead(run: Run, other: Run) -> float:
    return accuracy(run) - accuracy(other)


def _flat(runs: Sequence[Run]) -> Effects:
    """FLAT minus the distance between the mean gains with the fewest and with the most local epochs, by seed."""
    differences = extreme_effects(runs, "fedeve", "local.epochs", _gain)
    return {seed: FLAT - abs(difference) for seed, difference in differences.items()}


CONCENTRATION = "clients.partition.concentration"

FLAT = 0.1
"""Gains that differ by less are of one size; the paper's boxes at one concentration span about as much."""

CLAIMS = (
    Claim(
        "fedeve-accuracy",
        "FedEve, Table 1",
        "FedEve is more accurate than FedAvg",
        "accuracy of the last 10 evaluated rounds: FedEve minus FedAvg",
        "points",
        lambda runs: pair_effects(runs, "fedeve", "fedavg", _ahead),
    ),
    Claim(
        "fedeve-over-momentum",
        "FedEve, Table 1",
        "FedEve is more accurate than FedAvgM",
        "accuracy of the last 10 evaluated rounds: FedEve minus FedAvgM",
        "points",
        lambda runs: pair_effects(runs, "fedeve", "fedavgm", _ahead),
    ),
    Claim(
        "fedeve-momentum",
        "FedEve, Table 1",
        "FedAvgM is more accurate than FedAvg",
        "accuracy of the last 10 evaluated rounds: FedAvgM minus FedAvg",
        "points",
        lambda runs: pair_effects(runs, "fedavgm", "fedavg", _ahead),
    ),
    Claim(
        "fedeve-margin-heterogeneity",
        "FedEve, Table 1",
        "FedEve's margin over FedAvg grows as the concentration falls",
        "accuracy of FedEve minus FedAvg: at the smallest concentration minus at the largest",
        "points",
        lambda runs: extreme_pair_effects(runs, "fedeve", "fedavg", CONCENTRATION, _ahead),
        across=True,
    ),
    Claim(
        "fedeve-gain-heterogeneity",
        "FedEve, Fig. 4",
        "the Kalman gain grows as the concentration falls",
        "mean gain of FedEve: at the smallest concentration minus at the largest",
        "1",
        lambda runs: extreme_effects(runs, "fedeve", CONCENTRATION, _gain),
        across=True,
        of_run=_gain,
    ),
    Claim(
        "fedeve-gain-epochs",
        "FedEve, Fig. 4",
        "the Kalman gain is almost the same for any number of local epochs",
        f"{FLAT} minus the distance of the mean gains with the fewest and the most local epochs",
        "1",
        _flat,
    ),
    Claim(
        "fedeve-within",
        "FedEve, Fig. 3a",
        "labels differ more between the clients of a round as the concentration falls",
        "divergence within rounds: at the smallest concentration minus at the largest",
        "nats",
        lambda runs: extreme_effects(runs, "fedavg", CONCENTRATION, _within),
        across=True,
        of_run=_within,
    ),
    Claim(
        "fedeve-between",
        "FedEve, Fig. 3a",
        "labels differ more between rounds as the concentration falls",
        "divergence between rounds: at the smallest concentration minus at the largest",
        "nats",
        lambda runs: extreme_effects(runs, "fedavg", CONCENTRATION, _between),
        across=True,
        of_run=_between,
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
