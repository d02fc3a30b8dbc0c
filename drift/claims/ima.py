"""Claims of Zhou et al. 2024 (IMA)."""

from __future__ import annotations

import numpy as np
from scipy import stats

from drift.analyses.landscapes.planes import average_line, global_line, round_plane
from drift.claims.claim import Claim
from drift.claims.measures import MARGIN, accuracy, biases, late, mean_gain, more_models
from drift.claims.select_runs import extreme_effects, method_effects, pair_effects
from drift.runs.run import Run
from landscape.surfaces.minimum import fitted_minimum

_window_gain = mean_gain("ima-5")

POINTS = 5
"""Grid of planes whose marks alone are read."""


def _mean_below(run: Run) -> float:
    """Least loss of three clients of a late round minus the loss of their mean."""
    marks = run.cached(round_plane, round=late(run)[-1], points=POINTS)["mark_loss"]
    mean = float(marks.sel(mark="mean"))
    return float(marks.drop_sel(mark="mean").min()) - mean


def _tracks(run: Run) -> float:
    """Correlation over late rounds of the heterogeneity bias and the error of the averaged model."""
    result = biases(run)
    both = np.stack([result["heterogeneity_bias"].values, result["fma_error"].values])
    return float(np.corrcoef(both)[0, 1]) if both.shape[1] > 2 and bool((both.std(1) > 0).all()) else float("nan")


def _dominates(run: Run) -> float:
    result = biases(run)
    return float((result["heterogeneity_bias"] - result["train_bias"]).mean("round"))


def _above_loss(run: Run) -> float:
    """By how much the heterogeneity part of the squared bias exceeds the averaged model's squared error, a fraction."""
    result = biases(run)
    return float((result["B_H"] / result["fma_loss"]).mean("round") - 1)


def _rest_by_distance(run: Run) -> float:
    """Rank correlation over rounds of the error that averaging adds and the squared distance of the clients."""
    result = biases(run)
    both = np.stack([result["residual"].values, result["locality"].values ** 2])
    return float(stats.spearmanr(*both).statistic) if both.shape[1] > 2 else float("nan")


def _between_globals(run: Run) -> float:
    """Least loss between the last two global models minus that of the better one."""
    line = run.cached(global_line)
    inside = line["loss"].where((line["t"] > 0) & (line["t"] < 1)).min()
    return float(line["mark_loss"].sel(mark=["a", "b"]).min() - inside)


def _average_nearer(run: Run) -> float:
    """Distance to the minimum of the line, in line lengths: of the last global model minus of the mean.

    NaN where the minimum is not on the line.
    """
    line = run.cached(average_line)
    least = fitted_minimum(line).at["t"]
    return abs(0.0 - least) - abs(1.0 - least)


def _cohort(run: Run) -> int:
    return run.experiment.clients.per_round


def _accuracy_claim(base: str, title: str) -> Claim:
    label = "ima" if base == "fedavg" else f"{base}+ima"
    return Claim(
        f"ima-accuracy-{base}",
        "IMA, Table I",
        f"IMA is at least as accurate as {title} alone",
        f"accuracy of IMA with {title} minus that of {title}, last 10 evaluated rounds",
        "points",
        lambda runs: pair_effects(runs, label, base, lambda run, other: accuracy(run) - accuracy(other)),
        "no less",
        MARGIN,
    )


CLAIMS = (
    Claim(
        "ima-mean-below",
        "IMA, Fig. 1",
        "the mean of three clients has a lower loss than each of them",
        "least loss of three clients minus that of their mean, a late round of FedAvg",
        "nats",
        lambda runs: method_effects(runs, "fedavg", _mean_below, where=lambda run: _cohort(run) >= 3),
    ),
    Claim(
        "ima-heterogeneity-dominates",
        "IMA, Fig. 2",
        "the heterogeneity bias dominates the train bias after the early phase",
        "heterogeneity bias minus train bias, second half of FedAvg",
        "1",
        lambda runs: method_effects(runs, "fedavg", _dominates),
    ),
    Claim(
        "ima-heterogeneity-tracks",
        "IMA, Fig. 2",
        "the heterogeneity bias follows the error after the early phase",
        "correlation of both over rounds, second half of FedAvg",
        "1",
        lambda runs: method_effects(runs, "fedavg", _tracks),
    ),
    Claim(
        "ima-loss-heterogeneity",
        "IMA, Theorem 1",
        "after the early phase the heterogeneity bias bounds the loss of the mean",
        "heterogeneity part of the squared bias over the squared error of the mean, minus 1, second half of FedAvg",
        "1",
        lambda runs: method_effects(runs, "fedavg", _above_loss),
        "no less",
        0.1,
    ),
    Claim(
        "ima-rest-distance",
        "IMA, Theorem 1",
        "the term of the distance grows with its square",
        "rank correlation over rounds of the error that averaging adds and the squared locality, second half of FedAvg",
        "1",
        lambda runs: method_effects(runs, "fedavg", _rest_by_distance),
    ),
    Claim(
        "ima-more-models",
        "IMA, Fig. 4",
        "the error falls with the number of averaged models",
        "error of one client minus that of the mean of all, a late round of FedAvg",
        "points",
        lambda runs: method_effects(runs, "fedavg", more_models, where=lambda run: _cohort(run) >= 2),
    ),
    Claim(
        "ima-between-globals",
        "IMA, Fig. 5b",
        "between two global models the loss is below that at both",
        "loss of the better of the last two global models of FedAvg minus the least between them",
        "nats",
        lambda runs: method_effects(runs, "fedavg", _between_globals),
    ),
    Claim(
        "ima-nearer-minimum",
        "IMA, Figs. 5c and 7c",
        "the average of the last global models lies nearer the minimum than the last one",
        "distance to the minimum of the line through both: last model minus average, in distances of both, FedAvg",
        "1",
        lambda runs: method_effects(runs, "fedavg", _average_nearer),
    ),
    Claim(
        "ima-window-gains",
        "IMA, Fig. 5c",
        "averaging the last five global models of FedAvg lowers the loss",
        "loss of the global model minus that of the mean of the last five, three late rounds, on half of the test set",
        "nats",
        lambda runs: method_effects(runs, "fedavg", _window_gain),
    ),
    _accuracy_claim("fedavg", "FedAvg"),
    _accuracy_claim("fedprox", "FedProx"),
    _accuracy_claim("fedasam", "FedASAM"),
    _accuracy_claim("fedadam", "FedAdam"),
    Claim(
        "ima-gain-heterogeneity",
        "IMA, Fig. 6a",
        "averaging gains more the more heterogeneous the clients are",
        "gain of a window of five, FedAvg: at the smallest concentration minus at the largest",
        "nats",
        lambda runs: extreme_effects(runs, "fedavg", "clients.partition.concentration", _window_gain),
        across=True,
        of_run=_window_gain,
    ),
    Claim(
        "ima-gain-participation",
        "IMA, Fig. 6b",
        "averaging gains more the fewer clients take part",
        "gain of a window of five, FedAvg: at the smallest cohort minus at the largest",
        "nats",
        lambda runs: extreme_effects(runs, "fedavg", "clients.per_round", _window_gain),
        across=True,
        of_run=_window_gain,
    ),
)
