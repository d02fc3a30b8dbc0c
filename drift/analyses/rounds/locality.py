"""Distances of the clients of a round to their mean."""

from __future__ import annotations

import xarray as xr
from torch import Tensor

from drift.analyses.per_round import series
from drift.config.cohort_weights import cohort_weights
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.gram import CLIENTS
from drift.store.round_record import Round


@analysis("round", "client", cost="record")
def locality(run: Run) -> xr.Dataset:
    """Distance of the clients to their weighted mean in every round; the largest one is the locality of WENS-FMA.

    Delta = max_k |w_k - w_FMA|, computed from the Gram matrix alone.

    Source: Zhou et al. 2024, section 5, theorem 1; methods.md 3.2.

    Args:
        run: Run to analyse.

    Returns:
        Dataset with locality and mean_distance (round,) and distance (round, client).
    """

    def measure(record: Round) -> dict[str, float | Tensor]:
        if not len(record.ids):
            return {}
        weights = cohort_weights(run.experiment, record.sizes)
        lengths = distances(record.gram, weights)
        return {"locality": float(lengths.max()), "mean_distance": float(weights @ lengths), "distance": lengths}

    about = {
        "locality": ("largest distance of a client to the mean", "1"),
        "mean_distance": ("weighted mean distance of the clients to their mean", "1"),
        "distance": ("distance of a client to the mean", "1"),
    }
    return series(run, measure, about, analysis="locality", source="Zhou et al. 2024, theorem 1")


def distances(gram: Tensor, weights: Tensor) -> Tensor:
    """Distances |w_k - sum_j weights_j w_j| of the clients of a round, shape (m,), from its Gram matrix.

    Args:
        gram: Inner products of a round, shape (m + 3, m + 3).
        weights: Sum 1, shape (m,).
    """
    inner = gram[CLIENTS:, CLIENTS:].double()
    weights = weights.to(inner)
    cross = inner @ weights
    squares = inner.diagonal() - 2 * cross + weights @ cross
    return squares.clamp(min=0).sqrt()
