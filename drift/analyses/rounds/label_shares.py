"""Class shares of clients, and their evenness."""

from __future__ import annotations

import numpy as np
from scipy.special import entr

from drift.partitions import histogram
from drift.runs.run import Run


def class_shares(run: Run, index: int | None = None) -> np.ndarray:
    """Share of every class in the training samples of each client, q_k; shape (K, C), NaN for a client without any.

    The samples are those of the partition, or with `index` those that the client trains on in that round.

    Raises:
        LookupError: If the run was imported without its partition.
    """
    require_partition(run)
    parts = run.parts if index is None else run.parts_in(index)
    counts = histogram(run.labels, parts, len(run.dataset.classes)).astype(np.float64)
    totals = counts.sum(1, keepdims=True)
    return np.divide(counts, totals, out=np.full_like(counts, np.nan), where=totals > 0)


def require_partition(run: Run) -> None:
    """Refuse a run whose partition is not known.

    Raises:
        LookupError: If it was imported without its partition, or the user's task has no parts.
    """
    if any(text.startswith("partition") for text in run.about.get("unknown", [])) and run.context.user_task is None:
        raise LookupError(
            f"run {run.name} was imported, and who held which samples is not known; give its partition when importing "
            "(--set clients.partition=...), or a task with parts when opening it (docs/howto-own-task.md)."
        )
    len(run.parts)  # raises where the user's task has no parts


def evenness(shares: np.ndarray) -> np.ndarray:
    """Entropy of each row of class shares (K, C) over ln C: 1 for equal classes, 0 for a single one; shape (K,)."""
    entropy: np.ndarray = entr(shares).sum(1) / np.log(max(shares.shape[1], 2))
    return entropy


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
