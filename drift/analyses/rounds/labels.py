"""Which labels a cohort trains on, and how far they are from one client and one round to the next."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.special import rel_entr

from drift.analyses.rounds.label_shares import require_partition
from drift.partitions import histogram
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.results.progress import with_progress


@analysis("round", "client", "class", cost="record")
def label_scatter(run: Run, *, rounds: int = 20) -> xr.Dataset:
    """Samples of every class that each client of a cohort trains on, and how much they differ in and between rounds.

        within_t = mean over the cohort of JS(q_k, q_cohort),  between_t = JS(q_cohort, q)

    q_k are the class shares of client k in round t, q_cohort those of all data of the cohort, q those of all clients'
    data. The first number goes with client drift, the second with period drift. Both are between 0 and ln 2; n samples
    in place of a distribution over C classes alone give about (C - 1) / (8 n). Clients without samples do not count.

    Source: Shen et al., FedEve, section 3.2 and Fig. 3a; methods.md 3.4.

    Args:
        rounds: Rounds looked at, from the first.

    Returns:
        Dataset with count (round, client, class), samples, NaN for a client outside the cohort; within_divergence and
        between_divergence (round,), nats; share (class,), q, a fraction. The clients are those of any of these cohorts.

    Raises:
        ValueError: If no round is asked for.
        LookupError: If the run is complete in no round, or was imported and its partition is not known.
    """
    if rounds < 1:
        raise ValueError(f"rounds is {rounds}; give the number of rounds looked at, 1 or more.")
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
            held = histogram(run.labels, [parts[client] for client in ids.tolist()], len(names))
            count[row, np.searchsorted(clients, ids)] = held
            divergences[:, row] = _within_and_between(held, whole)
    return xr.Dataset(
        {
            "count": (("round", "client", "class"), count, {"long_name": "samples", "units": "samples"}),
            "within_divergence": ("round", divergences[0], _about("divergence of the clients within a round")),
            "between_divergence": ("round", divergences[1], _about("divergence of a round from all data")),
            "share": ("class", whole / max(whole.sum(), 1), {"long_name": "share of the class", "units": "fraction"}),
        },
        coords={
            "round": ("round", indices, {"long_name": "round", "units": "1"}),
            "client": ("client", clients, {"long_name": "client", "units": "1"}),
            "class": ("class", names, {"long_name": "class", "units": "1"}),
        },
        attrs={"analysis": "label_scatter", "source": "FedEve, section 3.2 and Fig. 3a"},
    )


def js_divergence(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Jensen-Shannon divergence of counts or shares (..., C), in nats, 0 to ln 2; NaN where either is all zero.

    JS(p, q) = KL(p, (p + q) / 2) / 2 + KL(q, (p + q) / 2) / 2.
    """
    p, q = _shares(one), _shares(other)
    middle = (p + q) / 2
    found: np.ndarray = (rel_entr(p, middle) + rel_entr(q, middle)).sum(-1) / 2
    return found


def _within_and_between(held: np.ndarray, whole: np.ndarray) -> tuple[float, float]:
    """Both divergences of a cohort's counts (m, C) where all clients have counts (C,)."""
    held = held[held.sum(1) > 0]
    if not len(held):
        return float("nan"), float("nan")
    together = held.sum(0)
    return float(js_divergence(held, together).mean()), float(js_divergence(together, whole))


def _shares(counts: np.ndarray) -> np.ndarray:
    counts = np.asarray(counts, dtype=np.float64)
    total = counts.sum(-1, keepdims=True)
    return np.divide(counts, total, out=np.full_like(counts, np.nan), where=total > 0)


def _about(text: str) -> dict[str, str]:
    return {"long_name": text, "units": "nats"}
