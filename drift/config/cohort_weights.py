"""Weights of the clients of a round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from drift.config.experiment import Experiment


def cohort_weights(experiment: Experiment, sizes: Tensor) -> Tensor:
    """Weights (m,) that an experiment gives the clients of a round, float64; they sum to 1.

    They are proportional to the numbers of samples, or equal where `clients.weighting` is "uniform". A client without
    samples has weight 0; where no client has any, all weights are equal.

    Args:
        sizes: Training samples of each client, shape (m,).
    """
    weights = sizes.double() if experiment.clients.weighting == "samples" else (sizes > 0).double()
    if not bool(weights.any()):
        weights = torch.ones(len(sizes), dtype=torch.float64)
    return weights / weights.sum()
