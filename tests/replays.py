"""Clients of recorded rounds trained again, as one matrix."""

from __future__ import annotations

import torch
from torch import Tensor

from drift.simulation.retrain import replayed


def replay(run, jobs, **options) -> tuple[Tensor, Tensor]:
    """Models (J, d) and floating buffers (J, b) of J local trainings, in the order of the jobs."""
    trained = [pair for _, pair in sorted(replayed(run, jobs, **options), key=lambda one: one[0])]
    models, buffers = zip(*trained, strict=True)
    return torch.stack(models), torch.stack(buffers)
