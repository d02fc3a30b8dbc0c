"""Claims of Shen et al. (FedEve)."""

from __future__ import annotations

from collections.abc import Sequence

from drift.analyses.rounds.variance import drift_variances
from drift.claims.claim import Claim, Effects
from drift.claims.measures import MARGIN, accuracy, round_mean
from drift.claims.select_runs import extreme_effects, pair_effects
from drift.partitions.drift import Partition as DriftPartition
from drift.runs.run import Run

_gain = round_mean(drift_variances, "gain")


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


def _above(base: str, title: str, name: str) -> Claim:
    return Claim(
        name,
        "FedEve, Table 1",
        f"FedEve is more accurate than {title}",
        f"accuracy of the last 10 evaluated rounds: FedEve minus {title}",
        "points",
        lambda runs: pair_effects(runs, "fedeve", base, _ahead),
        margin=MARGIN,
    )


CONCENTRATION = "clients.partition.concentration"

FLAT = 0.1
"""Gains that differ by less are of one size; the paper's boxes at one concentration span about as much."""

CLAIMS = (
    _above("fedavg", "FedAvg", "fedeve-accuracy"),
    _above("fedavgm", "FedAvgM", "fedeve-over-momentum"),
    _above("scaffold", "SCAFFOLD", "fedeve-over-scaffold"),
    Claim(
        "fedeve-momentum",
        "FedEve, Table 1",
        "FedAvgM is more accurate than FedAvg",
        "accuracy of the last 10 evaluated rounds: FedAvgM minus FedAvg",
        "points",
        lambda runs: pair_effects(runs, "fedavgm", "fedavg", _ahead),
        margin=MARGIN,
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
        "mean gain of FedEve: with the fewest local epochs minus with the most",
        "1",
        lambda runs: extreme_effects(runs, "fedeve", "local.epochs", _gain),
        "same",
        FLAT,
    ),
    Claim(
        "fedeve-client-akin",
        "FedEve, Fig. 3b",
        "client drift alone is akin to no drift",
        "accuracy of FedAvg: neither drift minus client drift only",
        "points",
        lambda runs: _settings(runs, "iid", "client"),
        "same",
        MARGIN,
    ),
    Claim(
        "fedeve-period-worse",
        "FedEve, Fig. 3b",
        "period drift alone costs more accuracy than client drift alone",
        "accuracy of FedAvg: client drift only minus period drift only",
        "points",
        lambda runs: _settings(runs, "client", "period"),
        margin=MARGIN,
    ),
    Claim(
        "fedeve-both-worst",
        "FedEve, Fig. 3b",
        "both drifts together cost more accuracy than client drift alone",
        "accuracy of FedAvg: client drift only minus both",
        "points",
        lambda runs: _settings(runs, "client", "both"),
        margin=MARGIN,
    ),
)
