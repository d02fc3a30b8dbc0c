"""Similarity between the classes of a cohort and those of all clients, per round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from drift.analyses.per_round import relative, result
from drift.analyses.rounds.label_shares import class_shares
from drift.analyses.rounds.labels import js_divergence
from drift.config.cohort_weights import cohort_weights
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.results.progress import with_progress

Similarity = Callable[[np.ndarray, np.ndarray], float]


@analysis("class", "round", cost="record")
def heterogeneity(run: Run) -> xr.Dataset:
    """Heterogeneity coherence of every round: similarity of the classes of the cohort and of all clients.

        sim(q_cohort, q),  q_cohort = sum_{i in S_t} lambda_i q_i,  q = sum_j lambda_j q_j

    with q_k the class shares of the samples that client k trains on in the round. Over all clients lambda are the
    shares of samples (equal ones where the experiment weighs clients equally); in the cohort they are the relative
    weights that the method used, or, for names that end in _data, the shares of samples, the weights of plain
    averaging. The paper leaves the similarity open; all three here are 1 for equal shares and 0 without a common class:

        overlap = sum_c min(p_c, q_c) = 1 - total variation
        cosine = <p, q> / (|p| |q|)
        jensen_shannon = 1 - JS(p, q) / ln 2

    Source: Li et al. 2023, definition 5.2 and figure 7; the similarities: methods.md 3.3.

    Args:
        run: Run to analyse.

    Returns:
        Dataset with overlap, cosine, jensen_shannon and the same with _data (round,); cohort_share and
        cohort_share_data (round, class); share (class,), that of all clients. NaN where no client of the cohort was
        usable, where weights sum to 0, and where negative weights leave a negative share.

    Raises:
        LookupError: If the run was imported without its partition.
    """
    shares = class_shares(run)
    sizes = run.dataset.sizes().astype(np.float64)
    weights = sizes if run.experiment.clients.weighting == "samples" else (sizes > 0).astype(np.float64)
    all_clients = mix(shares, weights)
    indices = run.rounds()
    mixtures = {name: np.full((len(indices), shares.shape[1]), np.nan) for name in ("", "_data")}
    for row, index in enumerate(with_progress(indices, run.context.progress)):
        record = run.round(index)
        if len(record.ids):
            trained = shares if run.parts_in(index) is run.parts else class_shares(run, index)
            cohort = trained[record.ids.numpy()]
            mixtures[""][row] = mix(cohort, relative(record.weights).numpy())
            mixtures["_data"][row] = mix(cohort, cohort_weights(run.experiment, record.sizes).numpy())
    dataset = xr.Dataset(
        {"share": ("class", all_clients)}, coords={"round": indices, "class": list(map(str, run.dataset.classes))}
    )
    for ending, rows in mixtures.items():
        for name, similarity in SIMILARITIES.items():
            dataset[f"{name}{ending}"] = ("round", [_compare(similarity, row, all_clients) for row in rows])
        dataset[f"cohort_share{ending}"] = (("round", "class"), rows)
    return result(dataset, _ABOUT, analysis="heterogeneity", source="Li et al. 2023, definition 5.2")


def mix(shares: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted mean (C,) of class shares (m, C) under weights (m,); rows that are NaN do not count."""
    finite = np.isfinite(shares).all(1)
    total = weights[finite].sum()
    if not np.isfinite(total) or total == 0:
        return np.full(shares.shape[1], np.nan)
    mixture: np.ndarray = weights[finite] @ shares[finite] / total
    return mixture


def overlap(first: np.ndarray, second: np.ndarray) -> float:
    """sum_c min(p_c, q_c), one minus the total variation distance."""
    return float(np.minimum(first, second).sum())


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    """<p, q> / (|p| |q|)."""
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def jensen_shannon(first: np.ndarray, second: np.ndarray) -> float:
    """1 - JS(p, q) / ln 2."""
    return 1 - float(js_divergence(first, second)) / float(np.log(2))


SIMILARITIES: dict[str, Similarity] = {"overlap": overlap, "cosine": cosine, "jensen_shannon": jensen_shannon}
"""Similarities of two class distributions (C,), by name."""


def _compare(similarity: Similarity, first: np.ndarray, second: np.ndarray) -> float:
    usable = np.isfinite(first).all() and np.isfinite(second).all() and min(first.min(), second.min()) >= 0
    return similarity(first, second) if usable else float("nan")


_NAMES = {
    "overlap": "overlap of classes, cohort and all",
    "cosine": "cosine of class shares, cohort and all",
    "jensen_shannon": "1 - JS / ln 2 of class shares, cohort and all",
}
_ABOUT = {
    **{name: (text, "1") for name, text in _NAMES.items()},
    **{f"{name}_data": (f"{text}, by data size", "1") for name, text in _NAMES.items()},
    "cohort_share": ("share of the class under the weights used", "fraction"),
    "cohort_share_data": ("share of the class in the cohort's data", "fraction"),
    "share": ("share of the class in all data", "fraction"),
}
