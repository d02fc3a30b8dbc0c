"""What claims of Zhou et al. 2024 (IMA) measure."""

from __future__ import annotations

import numpy as np
from scipy import stats

from drift.analyses.landscapes.planes import average_line, global_line, round_plane
from drift.claims.measures import biases, late
from drift.runs.run import Run
from landscape.surfaces.minimum import fitted_minimum

POINTS = 5
"""Grid of planes whose marks alone are read."""


def mean_below(run: Run) -> float:
    """Least loss of three clients of a late round minus the loss of their mean."""
    marks = run.cached(round_plane, round=late(run)[-1], points=POINTS)["mark_loss"]
    mean = float(marks.sel(mark="mean"))
    return float(marks.drop_sel(mark="mean").min()) - mean


def tracks(run: Run) -> float:
    """Correlation over late rounds of the heterogeneity bias and the error of the averaged model."""
    result = biases(run)
    both = np.stack([result["heterogeneity_bias"].values, result["fma_error"].values])
    return float(np.corrcoef(both)[0, 1]) if both.shape[1] > 2 and bool((both.std(1) > 0).all()) else float("nan")


def dominates(run: Run) -> float:
    """Mean over late rounds of the heterogeneity bias minus the train bias."""
    result = biases(run)
    return float((result["heterogeneity_bias"] - result["train_bias"]).mean("round"))


def above_loss(run: Run) -> float:
    """By how much the heterogeneity part of the squared bias exceeds the averaged model's squared error, a fraction."""
    result = biases(run)
    return float((result["B_H"] / result["fma_loss"]).mean("round") - 1)


def rest_by_distance(run: Run) -> float:
    """Rank correlation over rounds of the error that averaging adds and the squared distance of the clients."""
    result = biases(run)
    both = np.stack([result["residual"].values, result["locality"].values ** 2])
    return float(stats.spearmanr(*both).statistic) if both.shape[1] > 2 else float("nan")


def between_globals(run: Run) -> float:
    """Least loss between the last two global models minus that of the better one."""
    line = run.cached(global_line)
    inside = line["loss"].where((line["t"] > 0) & (line["t"] < 1)).min()
    return float(line["mark_loss"].sel(mark=["a", "b"]).min() - inside)


def average_nearer(run: Run) -> float:
    """Distance to the minimum of the line, in line lengths: of the last global model minus of the mean.

    NaN where the minimum is not on the line.
    """
    line = run.cached(average_line)
    least = fitted_minimum(line).at["t"]
    return abs(0.0 - least) - abs(1.0 - least)
