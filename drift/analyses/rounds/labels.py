"""Label counts of cohorts, and their divergence within and between rounds."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.special import rel_entr

from drift.analyses.per_round import result
from drift.analyses.rounds.label_shares import require_partition
from drift.partitions import histogram
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.results.progress import with_progress


@analysis("round", "client", "class", cost="record")
def label_scatter(run: Run, *, rounds: int = 20) -> xr.Dataset:
    """Samples per class of every client of a cohort, and their divergence within and between rounds.

        within_t = mean over the cohort of JS(q_k, q_cohort),  between_t = JS(q_cohort, q)

    q_k are the class shares of client k in round t, q_cohort those of all data of the cohort, q those of all clients'
    data. The first number relates to client drift, the second to period drift. Both are between 0 and ln 2; for equal
    distributions over C classes, n samples give about (C - 1) / (8 n). Clients without samples do not count.

    Source: Shen et al., FedEve, section 3.2 and Fig. 3a; methods.md 3.4.

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
    indices = run.rounds()[:rounds]
    if not indices:
        raise LookupError(f"run {run.name} has no round yet; go on training it.")
    names = [str(name) for name in run.dataset.classes]
    whole = histogram(run.labels, run.parts, len(names)).sum(0)
    cohorts = {index: run.round(index).ids.numpy() for index in indices}
    clients = np.unique(np.concatenate(list(cohorts.values()))).astype(np.int64)
    count = np.full((len(indices), len(clients), len(names)), np.nan)
    divergences = np.full((2, len(indices)), np.nan)
    for row, index in enumerate(with_progress(indices, run.context.progress)):
        parts, ids = run.parts_in(index), cohorts[index]
        if len(ids):  # none where every client diverged
            counts = histogram(run.labels, [parts[client] for client in ids.tolist()], len(names))
            count[row, np.searchsorted(clients, ids)] = counts
            divergences[:, row] = _within_and_between(counts, whole)
    variables = {
        "count": (("round", "client", "class"), count),
        "within_divergence": ("round", divergences[0]),
        "between_divergence": ("round", divergences[1]),
        "share": ("class", whole / max(whole.sum(), 1)),
    }
    coords = {"round": indices, "client": clients, "class": names}
    return result(variables, _ABOUT, coords, analysis="label_scatter", source="FedEve, section 3.2 and Fig. 3a")


def js_divergence(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Jensen-Shannon divergence of counts or shares (..., C), in nats, 0 to ln 2; NaN where either is all zero.

    JS(p, q) = KL(p, (p + q) / 2) / 2 + KL(q, (p + q) / 2) / 2.
    """
    p, q = _shares(first), _shares(second)
    middle = (p + q) / 2
    divergence: np.ndarray = (rel_entr(p, middle) + rel_entr(q, middle)).sum(-1) / 2
    return divergence


def _within_and_between(counts: np.ndarray, whole: np.ndarray) -> tuple[float, float]:
    """Both divergences of a cohort's counts (m, C), where the counts of all clients are `whole` (C,)."""
    counts = counts[counts.sum(1) > 0]
    if not len(counts):
        return float("nan"), float("nan")
    cohort = counts.sum(0)
    return float(js_divergence(counts, cohort).mean()), float(js_divergence(cohort, whole))


def _shares(counts: np.ndarray) -> np.ndarray:
    counts = np.asarray(counts, dtype=np.float64)
    total = counts.sum(-1, keepdims=True)
    return np.divide(counts, total, out=np.full_like(counts, np.nan), where=total > 0)


_ABOUT = {
    "count": ("samples", "samples"),
    "within_divergence": ("divergence of the clients within a round", "nats"),
    "between_divergence": ("divergence of a round from all data", "nats"),
    "share": ("share of the class", "fraction"),
}
