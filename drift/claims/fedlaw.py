"""Claims of Li et al. 2023 (FedLAW)."""

from __future__ import annotations

import numpy as np

from drift.analyses.curvature.eigenvalues import eigen_rounds
from drift.analyses.landscapes.model_quality import weight_histograms
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.norms_and_weights import aggregation_weights, update_norms
from drift.analyses.rounds.weight_factors import server_epochs
from drift.claims.claim import Claim
from drift.claims.measures import accuracy, late, mean_gain, quarters, round_mean
from drift.claims.select_runs import extreme_effects, method_effects, pair_effects
from drift.runs.run import Run


def _gamma_rises(run: Run) -> float:
    first, last = quarters(run.cached(aggregation_weights)["gamma"].values)
    return last - first


def _coherence_falls(run: Run) -> float:
    first, last = quarters(run.cached(coherence)["mean_cosine"].values)
    return first - last


def _coherence_lost(run: Run) -> float:
    """Minus the mean cosine over the last quarter: positive where coherence has been lost."""
    return -quarters(run.cached(coherence)["mean_cosine"].values)[1]


def _near_zero(run: Run) -> float:
    histogram = run.cached(weight_histograms)
    return float(histogram["near_zero"][-1]) / float(histogram["parameters"])


def _norm(run: Run) -> float:
    return float(run.cached(update_norms)["end_norm"][-1])


def _sharpest(run: Run) -> float:
    values = run.cached(eigen_rounds, rounds=[run.kept("globals")[-1]])
    return float(values["eigenvalue"].sel(rank=1).isel(round=-1))


def _corrupted_lighter(run: Run) -> float:
    """Weight over data share: mean of the clean clients minus mean of the corrupted ones."""
    ratio = run.cached(aggregation_weights)["weight_ratio"]
    wrong = sorted(run.dataset.corrupted)
    if not wrong:
        raise LookupError(f"run {run.name} has no corrupted clients; train with --set clients.corrupted=0.25")
    clean = [client for client in ratio["client"].values if client not in wrong]
    return float(ratio.sel(client=clean).mean(skipna=True) - ratio.sel(client=wrong).mean(skipna=True))


def _gamma_settles_first(run: Run) -> float:
    epochs = run.cached(server_epochs, round=late(run, "globals")[-1])
    return float(epochs["lambda_settled"] - epochs["gamma_settled"])


def _corrupted(run: Run) -> bool:
    return bool(np.any(run.experiment.clients.corrupted))


CLAIMS = (
    Claim(
        "fedlaw-shrinking-helps",
        "FedLAW, Fig. 1 and Table 1",
        "shrinking the mean of the clients a little lowers the loss",
        "loss of the model minus that of the best gamma from 0.9 to 1 on other samples, two or three late rounds",
        "nats",
        lambda runs: method_effects(runs, "fedavg", mean_gain("gamma", least=2)),
    ),
    Claim(
        "fedlaw-gamma-rises",
        "FedLAW, Fig. 3",
        "the learned gamma rises during training",
        "mean gamma of the last quarter of FedLAW's rounds minus that of the first",
        "1",
        lambda runs: method_effects(runs, "fedlaw", _gamma_rises),
    ),
    Claim(
        "fedlaw-coherence-falls",
        "FedLAW, Fig. 5",
        "the coherence of the clients falls during training",
        "weighted mean cosine of the first quarter of FedAvg's rounds minus that of the last",
        "1",
        lambda runs: method_effects(runs, "fedavg", _coherence_falls),
    ),
    Claim(
        "fedlaw-coherence-lost",
        "FedLAW, Fig. 5",
        "the coherence is around or below zero late in training",
        "minus the weighted mean cosine of the last quarter of FedAvg's rounds",
        "1",
        lambda runs: method_effects(runs, "fedavg", _coherence_lost),
        "no less",
        0.05,
    ),
    Claim(
        "fedlaw-near-zero",
        "FedLAW, Fig. 4",
        "the final model of FedLAW has more weights near zero than FedAvg's",
        "share of parameters below 0.01 in size: FedLAW minus FedAvg",
        "1",
        lambda runs: pair_effects(runs, "fedlaw", "fedavg", lambda run, other: _near_zero(run) - _near_zero(other)),
    ),
    Claim(
        "fedlaw-smaller-norm",
        "FedLAW, Fig. 10",
        "the model of FedLAW has a smaller norm than FedAvg's",
        "norm of the last global model: FedAvg minus FedLAW",
        "1",
        lambda runs: pair_effects(runs, "fedlaw", "fedavg", lambda run, other: _norm(other) - _norm(run)),
    ),
    Claim(
        "fedlaw-flatter",
        "FedLAW, Fig. 10",
        "the model of FedLAW lies flatter than FedAvg's",
        "largest Hessian eigenvalue of the last global model: FedAvg minus FedLAW",
        "1",
        lambda runs: pair_effects(runs, "fedlaw", "fedavg", lambda run, other: _sharpest(other) - _sharpest(run)),
    ),
    Claim(
        "fedlaw-accuracy",
        "FedLAW, Table 3",
        "FedLAW is more accurate than FedAvg",
        "accuracy of the last 10 evaluated rounds: FedLAW minus FedAvg",
        "points",
        lambda runs: pair_effects(runs, "fedlaw", "fedavg", lambda run, other: accuracy(run) - accuracy(other)),
    ),
    Claim(
        "fedlaw-fixed-gamma",
        "FedLAW, Table 1",
        "a fixed gamma below 1 is more accurate than none",
        "accuracy of the last 10 evaluated rounds: fixed shrinking minus FedAvg",
        "points",
        lambda runs: pair_effects(runs, "shrink", "fedavg", lambda run, other: accuracy(run) - accuracy(other)),
    ),
    Claim(
        "fedlaw-gamma-epochs",
        "FedLAW, Fig. 2",
        "the learned gamma falls with the number of local epochs",
        "mean gamma of FedLAW: with the fewest local epochs minus with the most",
        "1",
        lambda runs: extreme_effects(runs, "fedlaw", "local.epochs", round_mean(aggregation_weights, "gamma")),
    ),
    Claim(
        "fedlaw-corrupted",
        "FedLAW, Table 8",
        "corrupted clients get smaller weights",
        "weight over data share: mean of clean clients minus mean of corrupted ones, FedLAW",
        "1",
        lambda runs: method_effects(runs, "fedlaw", _corrupted_lighter, where=_corrupted),
    ),
    Claim(
        "fedlaw-gamma-first",
        "FedLAW, Fig. 14",
        "gamma settles before the weights do when the server learns",
        "server epochs until lambda is settled minus those until gamma is, a late round",
        "epochs",
        lambda runs: method_effects(runs, "fedlaw", _gamma_settles_first),
    ),
)
