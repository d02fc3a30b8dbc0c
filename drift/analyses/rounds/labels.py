"""Classes of clients and cohorts: shares, evenness, divergences in and between rounds, similarity to all clients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import xarray as xr

from drift.analyses.per_round import ABOUT, relative, result
from drift.partitions import histogram
from drift.runs.registry import analysis
from drift.runs.run import Run


@analysis("round", "client", "class", cost="record")
def label_scatter(run: Run, *, rounds: int = 20) -> xr.Dataset:
    """Samples per class of every client of a cohort, and their divergence within and between rounds.

        within_t = mean over the cohort of JS(q_k, q_cohort),  between_t = JS(q_cohort, q)

    q_k are the class shares of client k in round t, q_cohort those of all data of the cohort, q those of all clients'
    data. The first number relates to client drift, the second to sampling drift. Both are between 0 and ln 2; for equal
    distributions over C classes, n samples give about (C - 1) / (8 n). Clients without samples do not count.

    Source: Shen et al., FedEve, section 3.2 and Fig. 3a; papers.md 3.4.

    Args:
        run: Run to analyse.
        rounds: Number of rounds, from the first.

    Returns:
        Dataset with count (round, client, class), samples, NaN for a client outside the cohort; within_divergence and
        between_divergence (round,), nats; share (class,), q, a fraction. The clients are those in any of these cohorts.

    Raises:
        ValueError: If rounds is below 1.
        LookupError: If the run has no complete round, or was imported without its partition.
    """
    if rounds < 1:
        raise ValueError(f"rounds is {rounds}; give the number of rounds, 1 or more.")
    require_partition(run)
    run.require_round(-1)
    indices = run.rounds()[:rounds]
    names = run.dataset.class_names
    overall = histogram(run.labels, run.parts, len(names)).sum(0)
    cohorts = {index: run.round(index).ids.numpy() for index in indices}
    clients = np.unique(np.concatenate(list(cohorts.values()))).astype(np.int64)
    count = np.full((len(indices), len(clients), len(names)), np.nan)
    divergences = np.full((2, len(indices)), np.nan)
    for row, index in enumerate(run.context.track(indices)):
        parts, ids = run.parts_in(index), cohorts[index]
        if len(ids):  # none where every client diverged
            counts = histogram(run.labels, [parts[client] for client in ids.tolist()], len(names))
            count[row, np.searchsorted(clients, ids)] = counts
            divergences[:, row] = _within_and_between(counts, overall)
    variables = {
        "count": (("round", "client", "class"), count, "samples", "samples"),
        "within_divergence": ("round", divergences[0], "divergence of the clients within a round", "nats"),
        "between_divergence": ("round", divergences[1], "divergence of a round from all data", "nats"),
        "share": ("class", overall / max(overall.sum(), 1), "share of the class", "fraction"),
    }
    coords = {"round": indices, "client": clients, "class": names}
    return result(variables, None, coords, analysis="label_scatter", source="FedEve, section 3.2 and Fig. 3a")


def js_divergence(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Jensen-Shannon divergence of counts or shares (..., C), in nats, 0 to ln 2; NaN where either is all zero.

    JS(p, q) = KL(p, (p + q) / 2) / 2 + KL(q, (p + q) / 2) / 2.
    """
    p, q = _shares(first), _shares(second)
    from scipy.special import rel_entr  # here: it takes a tenth of a second to load

    return np.asarray((rel_entr(p, (p + q) / 2) + rel_entr(q, (p + q) / 2)).sum(-1) / 2)


def _within_and_between(counts: np.ndarray, overall: np.ndarray) -> tuple[float, float]:
    """Both divergences of a cohort's counts (m, C), where the counts of all clients are `overall` (C,)."""
    counts = counts[counts.sum(1) > 0]
    if not len(counts):
        return float("nan"), float("nan")
    cohort = counts.sum(0)
    return float(js_divergence(counts, cohort).mean()), float(js_divergence(cohort, overall))


def _shares(counts: np.ndarray) -> np.ndarray:
    counts = np.asarray(counts, dtype=np.float64)
    total = counts.sum(-1, keepdims=True)
    return np.divide(counts, total, out=np.full_like(counts, np.nan), where=total > 0)


def class_shares(run: Run, index: int | None = None) -> np.ndarray:
    """Share of every class in the samples of `class_counts`, q_k, shape (K, C); NaN for a client without any."""
    return _shares(class_counts(run, index))


def class_counts(run: Run, index: int | None = None) -> np.ndarray:
    """Training samples of each client and class whose labels count, shape (K, C).

    The samples are those of the partition, or with `index` those that the client trains on in that round.

    Raises:
        LookupError: If the run was imported without its partition.
    """
    require_partition(run)
    return histogram(run.labels, run.parts if index is None else run.parts_in(index), len(run.dataset.class_names))


def require_partition(run: Run) -> None:
    """Raise LookupError for a run that was imported without its partition, or for a user's task without parts."""
    if any(text.startswith("partition") for text in run.about.get("unknown", [])) and run.context.user_task is None:
        raise LookupError(
            f"run {run.name} was imported, and it is not known which client has which samples; give its partition when "
            "importing (--set clients.partition=...), or a task with parts when opening it (docs/howto-checkpoints.md)."
        )
    len(run.parts)  # raises where the user's task has no parts


def evenness(shares: np.ndarray) -> np.ndarray:
    """Entropy of each row of class shares (K, C) over ln C: 1 for equal classes, 0 for a single one; shape (K,)."""
    from scipy.special import entr

    return np.asarray(entr(shares).sum(1) / np.log(max(shares.shape[1], 2)))


def balance_groups(run: Run) -> dict[str, list[int]]:
    """Clients by the evenness of their classes: "balanced" from the median of all clients on, "imbalanced" below it.

    The groups follow from the partition, not from cohorts. Clients as even as the median are balanced, so all clients
    are balanced if they have equal shares; clients without samples are in neither group.

    Source: Li et al. 2023, figure 5 (there half of the clients have Dir(10), half Dir(0.1)); the rule is this
    project's.
    """
    even = np.round(evenness(class_shares(run)), 12)
    middle = np.nanmedian(even) if np.isfinite(even).any() else np.nan
    with_samples = np.isfinite(even)
    return {
        "balanced": np.flatnonzero(with_samples & (even >= middle)).tolist(),
        "imbalanced": np.flatnonzero(with_samples & (even < middle)).tolist(),
    }


Similarity = Callable[[np.ndarray, np.ndarray], float]


@analysis("class", "round", cost="record")
def heterogeneity(run: Run) -> xr.Dataset:
    """Label similarity of every round: how alike the classes of the cohort and of all clients are.

        sim(q_cohort, q),  q_cohort = sum_{i in S_t} lambda_i q_i,  q = sum_j lambda_j q_j

    with q_k the class shares of the samples that client k trains on in the round. Over all clients lambda are the
    shares of samples with a label that counts (equal ones where the experiment weighs clients equally); in the cohort
    they are the relative weights that the method used, or, for names that end in _data, those shares again. The paper
    leaves the similarity open; all three here are 1 for equal shares and 0 without a common class:

        overlap = sum_c min(p_c, q_c) = 1 - total variation
        cosine = <p, q> / (|p| |q|)
        jensen_shannon = 1 - JS(p, q) / ln 2

    Source: Li et al. 2023, definition 5.2 (heterogeneity coherence) and figure 7; the similarities: papers.md 3.3.

    Args:
        run: Run to analyse.

    Returns:
        Dataset with overlap, cosine, jensen_shannon and the same with _data (round,); cohort_share and
        cohort_share_data (round, class); share (class,), that of all clients. NaN where no client of the cohort was
        usable, where weights sum to 0, and where negative weights leave a negative share.

    Raises:
        LookupError: If the run was imported without its partition.
    """
    counts = class_counts(run)
    all_clients = _pooled(run, counts)
    indices = run.rounds()
    mixtures = {name: np.full((len(indices), counts.shape[1]), np.nan) for name in ("", "_data")}
    for row, index in enumerate(run.context.track(indices)):
        record = run.round(index)
        if len(record.ids):
            cohort = (counts if run.parts_in(index) is run.parts else class_counts(run, index))[record.ids.numpy()]
            mixtures[""][row] = mix(_shares(cohort), relative(record.weights).numpy())
            mixtures["_data"][row] = _pooled(run, cohort)
    dataset = xr.Dataset({"share": ("class", all_clients)}, coords={"round": indices, "class": run.dataset.class_names})
    for ending, rows in mixtures.items():
        for name, similarity in SIMILARITIES.items():
            dataset[f"{name}{ending}"] = ("round", [_compare(similarity, row, all_clients) for row in rows])
        dataset[f"cohort_share{ending}"] = (("round", "class"), rows)
    return result(dataset, ABOUT["heterogeneity"], analysis="heterogeneity", source="Li et al. 2023, definition 5.2")


def _pooled(run: Run, counts: np.ndarray) -> np.ndarray:
    """Class shares (C,) of clients with counts (m, C) under the weights of plain averaging by samples that count."""
    return mix(_shares(counts), run.experiment.cohort_weights(torch.from_numpy(counts.sum(1))).numpy())


def mix(shares: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted mean (C,) of class shares (m, C) under weights (m,); rows that are NaN do not count."""
    finite = np.isfinite(shares).all(1)
    total = weights[finite].sum()
    if not np.isfinite(total) or total == 0:
        return np.full(shares.shape[1], np.nan)
    return np.asarray(weights[finite] @ shares[finite] / total)


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
