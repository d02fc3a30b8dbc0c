"""The clients of one round in a table: their updates against the mean and the global step, their weights and data."""

from __future__ import annotations

from typing import Any

import torch
import xarray as xr
from torch import Tensor

from drift.analyses.per_round import relative, result
from drift.analyses.rounds.coherence import cosines
from drift.analyses.rounds.norms_and_weights import distances
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.round_record import CLIENTS, STEP


@analysis("client", "client_other", cost="record")
def cohort_table(run: Run, *, round: int = -1) -> xr.Dataset:
    """Length of each client's update, its cosines, weight and samples in one round, from the Gram matrix alone.

        cosine_mean_k = <D_k, D> / (|D_k| |D|),  D = sum_j p_j D_j

    with p_j the weights that the experiment gives by data. The mean includes the client itself;
    `drift.client_deviations` has the cosine with the mean of the others. A client that did not move has cosine 0.

    Source: Li et al. 2023, definition 5.1 (cosines of pairs); papers.md 3.3.

    Args:
        run: Run to analyse.
        round: Number of the round; negative ones count from the last complete one.

    Returns:
        Dataset with update_norm, distance (to the mean), cosine_mean, cosine_step (with the step of the global model),
        weight (as the method used it), relative_weight (these scaled to sum 1), share and samples over client, and
        cosine (client, client_other); labelled with client ids.
    """
    record = run.round(round)
    gram, ids = record.gram.double(), record.ids.tolist()
    weights = run.experiment.cohort_weights(record.sizes) if ids else torch.zeros(0, dtype=torch.float64)
    mean = torch.zeros(len(gram), dtype=torch.float64)
    mean[CLIENTS:] = weights
    step = torch.zeros_like(mean)
    step[STEP] = 1
    columns: dict[str, Any] = {
        "update_norm": (gram.diagonal()[CLIENTS:].clamp(min=0).sqrt(), "length of the client's update"),
        "distance": (distances(gram, weights), "distance of the client to the mean"),
        "cosine_mean": (_cosines_with(gram, mean), "cosine of the update with the mean update"),
        "cosine_step": (_cosines_with(gram, step), "cosine of the update with the global step"),
        "weight": (record.weights.double(), "aggregation weight"),
        "relative_weight": (relative(record.weights), "relative aggregation weight", "fraction"),
        "share": (record.shares, "share of the cohort's samples", "fraction"),
        "samples": (record.sizes.double(), "training samples", "samples"),
    }
    variables: dict[str, Any] = {name: ("client", values.numpy(), *words) for name, (values, *words) in columns.items()}
    variables["cosine"] = ("client", "client_other"), cosines(gram).numpy(), "cosine between client updates"
    coords = {"client": ids, "client_other": ids}
    source = "Li et al. 2023, definition 5.1"
    return result(variables, None, coords, analysis="cohort_table", source=source, round=record.index)


def _cosines_with(gram: Tensor, combination: Tensor) -> Tensor:
    """Cosine of each client's update with a combination (m + 3,) of the rows of a Gram matrix, (m,); 0 with zero."""
    inner = (gram @ combination)[CLIENTS:]
    length = (combination @ gram @ combination).clamp(min=0).sqrt()
    scale = gram.diagonal()[CLIENTS:].clamp(min=0).sqrt() * length
    return torch.where(scale > 0, inner / scale, torch.zeros_like(inner)).clamp(-1, 1)
