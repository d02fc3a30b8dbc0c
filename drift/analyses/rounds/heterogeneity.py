"""How much the data that a round's weights stand for look like all data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from torch import Tensor

from drift.analyses.per_round import described, relative
from drift.analyses.rounds.label_shares import class_shares
from drift.analyses.rounds.labels import js_divergence
from drift.config.cohort_weights import cohort_weights
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.round_record import Round
from landscape.results.progress import with_progress

Similarity = Callable[[np.ndarray, np.ndarray], float]


@analysis("class", "round", cost="record")
def heterogeneity(run: Run) -> xr.Dataset:
    """Heterogeneity coherence of every round: how alike the classes of the cohort and of all clients are.

        sim(q_cohort, q),  q_cohort = sum_{i in S_t} lambda_i q_i,  q = sum_j lambda_j q_j

    with q_k the class shares of what client k trains on in the round. Over all clients lambda are the shares of
    samples (equal ones where the experiment weighs clients equally); in the cohort they are the relative weights that
    the method used, and beside them the shares of samples (names that end in _data), what plain averaging would have
    used. The paper leaves the similarity open; all three here are 1 for equal shares and 0 where no class is common:

        overlap = sum_c min(p_c, q_c) = 1 - total variation
        cosine = <p, q> / (|p| |q|)
        jensen_shannon = 1 - JS(p, q) / ln 2

    Source: Li et al. 2023, definition 5.2 and figure 7; the similarities: methods.md 3.3.

    Returns:
        Dataset with overlap, cosine, jensen_shannon and the same with _data (round,); cohort_share and
        cohort_share_data (round, class); share (class,), that of all clients. NaN where no client of the cohort was
        usable, where weights sum to 0, and where negative weights leave a negative share.

    Raises:
        LookupError: If the run was imported and who held which samples is not known.
    """
    held = class_shares(run)
    sizes = run.dataset.sizes().astype(np.float64)
    each = sizes if run.experiment.clients.weighting == "samples" else (sizes > 0).astype(np.float64)
    everyone = mixed(held, each)
    indices = run.rounds()
    mixtures = {name: np.full((len(indices), held.shape[1]), np.nan) for name in ("", "_data")}
    for row, index in enumerate(with_progress(indices, run.context.progress)):
        record = run.round(index)
        if len(record.ids):
            trained = held if run.parts_in(index) is run.parts else class_shares(run, index)
            mixtures[""][row] = _cohort(trained, record, relative(record.weights))
            mixtures["_data"][row] = _cohort(trained, record, cohort_weights(run.experiment, record.sizes))
    found = xr.Dataset(
        {"share": ("class", everyone)}, coords={"round": indices, "class": list(map(str, run.dataset.classes))}
    )
    for ending, rows in mixtures.items():
        for name, similarity in SIMILARITIES.items():
            found[f"{name}{ending}"] = ("round", [_similar(similarity, row, everyone) for row in rows])
        found[f"cohort_share{ending}"] = (("round", "class"), rows)
    return described(found, _ABOUT).assign_attrs(analysis="heterogeneity", source="Li et al. 2023, definition 5.2")


def mixed(held: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Class shares (C,) of clients with shares `held` (m, C) under weights (m,); rows that are NaN do not count."""
    known = np.isfinite(held).all(1)
    total = weights[known].sum()
    if not np.isfinite(total) or total == 0:
        return np.full(held.shape[1], np.nan)
    mixture: np.ndarray = weights[known] @ held[known] / total
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
"""Of two class distributions (C,), by name."""


def _cohort(held: np.ndarray, record: Round, weights: Tensor) -> np.ndarray:
    return mixed(held[record.ids.numpy()], weights.numpy())


def _similar(similarity: Similarity, first: np.ndarray, second: np.ndarray) -> float:
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
    "class": ("class", "1"),
}
