"""What claims of Zhou et al. 2024 (IMA) measure."""

from functools import partial

import numpy as np
from scipy import stats

from drift.analyses.landscapes.planes import average_line, global_line, round_plane
from drift.claims.measures import biases, late, mean_of
from drift.config.random_keys import cohort
from drift.runs.run import Run
from landscape.surfaces.minimum import fitted_minimum

POINTS = 5
"""Grid of planes whose marks alone are read, in files with one plane."""

TRIPLES = 3
"""Disjoint triples of clients of a round."""


def mean_below(run: Run) -> float:
    """Least loss of three clients minus the loss of their mean: mean over late rounds and triples of their cohorts.

    Triples with clients that have no samples, or that diverged, are left out.
    """

    def below(**options: object) -> float:
        marks = run.cached(round_plane, **options)["mark_loss"]
        return float(marks.drop_sel(mark="mean").min()) - float(marks.sel(mark="mean"))

    clients, rounds = run.experiment.clients, late(run)
    numbers = []
    for index in rounds:
        ids = cohort(run.experiment.seed, index, clients.number, clients.per_round).tolist()
        triples = [ids[first : first + 3] for first in range(0, min(len(ids) - 2, 3 * TRIPLES), 3)]
        numbers += [partial(below, round=index, clients=triple, points=2) for triple in triples]
    return mean_of(numbers, partial(below, round=rounds[-1], points=POINTS))


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
    """By how much bias, variance and covariance together exceed the averaged model's squared error, a fraction."""
    result = biases(run)
    terms = result["bias2"] + result["var"] + result["cov"]
    return float((terms / result["fma_loss"]).mean("round") - 1)


def rest_by_distance(run: Run) -> float:
    """Rank correlation over rounds of |loss of the mean - loss of the mean output| and squared client distance."""
    result = biases(run)
    both = np.stack([np.abs(result["residual"].values), result["locality"].values ** 2])
    return float(stats.spearmanr(*both).statistic) if both.shape[1] > 2 else float("nan")


def between_globals(run: Run) -> float:
    """Loss of the better of two successive global models minus the least between them: mean over the last five pairs.

    No model is in two pairs.
    """

    def between(**options: object) -> float:
        line = run.cached(global_line, **options)
        inside = line["loss"].where((line["t"] > 0) & (line["t"] < 1)).min()
        return float(line["mark_loss"].sel(mark=["a", "b"]).min() - inside)

    last = run.kept("globals")[-10:][::-1]
    pairs = [(first, second) for second, first in zip(last[::2], last[1::2], strict=False) if second == first + 1]
    return mean_of([partial(between, rounds=pair) for pair in pairs], between)


def average_nearer(run: Run) -> float:
    """How far beyond the middle of the last global model (0) and the mean (1) the minimum of their line lies.

    Positive where it is nearer to the mean. It grows on beyond the mean, unlike the difference of both distances. A
    minimum beyond an end of the scanned line counts as that end, -1 or 1. NaN where the loss is not finite, or equally
    low in two places.
    """
    line = run.cached(average_line)
    lowest = line["t"].values[line["loss"].values == np.nanmin(line["loss"].values, initial=np.inf)]
    if len(lowest) != 1:
        return float("nan")
    minimum = fitted_minimum(line)
    end = float(line["t"].max() if lowest[0] > 0.5 else line["t"].min())
    return (end if minimum.state == "edge" else minimum.at["t"]) - 0.5
