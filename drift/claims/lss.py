"""Claims of Chen et al. 2024 (LSS)."""

from __future__ import annotations

from drift.analyses.curvature.eigenvalues import round_sharpness
from drift.analyses.landscapes.barriers import client_barriers
from drift.analyses.landscapes.model_quality import noise_robustness, three_accuracies
from drift.claims.claim import Claim
from drift.claims.measures import last_accuracy, late, more_models
from drift.claims.select_runs import method_effects, pair_effects
from drift.runs.run import Run


def _drop(run: Run) -> float:
    """Accuracy lost under noise of 8/255, in points."""
    return 100 * float(run.cached(noise_robustness)["drop"].isel(value=-1))


def _sharpness(run: Run) -> float:
    return float(run.cached(round_sharpness, round=late(run, "globals")[-1])["median"])


def _barrier(run: Run) -> float:
    """Mean barrier between the clients of a late round."""
    barriers = run.cached(client_barriers, round=late(run)[-1])["barrier"]
    clients = [mark for mark in barriers["mark"].values if str(mark).startswith("client")]
    values = barriers.sel(mark=clients, mark_other=clients).values
    return float(values.sum() / max(1, values.size - len(clients)))


def _outside(run: Run) -> float:
    return 100 * float(run.cached(three_accuracies, round=late(run)[-1])["ood_mean"])


CLAIMS = (
    Claim(
        "lss-accuracy",
        "LSS, Table 1",
        "LSS is more accurate than FedAvg after the same few rounds",
        "accuracy after the last round: LSS minus FedAvg",
        "points",
        lambda runs: pair_effects(runs, "lss", "fedavg", lambda run, other: last_accuracy(run) - last_accuracy(other)),
    ),
    Claim(
        "lss-more-models",
        "LSS, Fig. 6",
        "the aggregated model is better the more models it averages",
        "error of one client minus that of the mean of all, a late round of LSS",
        "points",
        lambda runs: method_effects(runs, "lss", more_models),
    ),
    Claim(
        "lss-connected",
        "LSS, section 4.3",
        "the clients of LSS are better connected than FedAvg's",
        "mean barrier between clients of a late round: FedAvg minus LSS",
        "nats",
        lambda runs: pair_effects(runs, "lss", "fedavg", lambda run, other: _barrier(other) - _barrier(run)),
    ),
    Claim(
        "lss-outside",
        "LSS, Fig. 6",
        "local models of LSS are better on other clients' data than FedAvg's",
        "accuracy of local models on the others' data, a late round: LSS minus FedAvg",
        "points",
        lambda runs: pair_effects(runs, "lss", "fedavg", lambda run, other: _outside(run) - _outside(other)),
    ),
    Claim(
        "lss-robust",
        "LSS, Table 6",
        "LSS loses less accuracy under noise than FedAvg",
        "accuracy lost under uniform noise of 8/255: FedAvg minus LSS",
        "points",
        lambda runs: pair_effects(runs, "lss", "fedavg", lambda run, other: _drop(other) - _drop(run)),
    ),
    Claim(
        "lss-flatter",
        "LSS, Table 7",
        "LSS ends flatter than FedAvg",
        "median over minibatches of the largest Hessian eigenvalue, a late round: FedAvg minus LSS",
        "1",
        lambda runs: pair_effects(runs, "lss", "fedavg", lambda run, other: _sharpness(other) - _sharpness(run)),
    ),
)
