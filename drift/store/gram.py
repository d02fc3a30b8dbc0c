"""The Gram matrix of a round: all inner products from which norms, angles and drift variances follow."""

from __future__ import annotations

import torch
from torch import Tensor

START, PREVIOUS, STEP, CLIENTS = 0, 1, 2, 3
"""Rows of the matrix; client k of the cohort is row CLIENTS + k."""


def gram(start: Tensor, previous: Tensor, step: Tensor, deltas: Tensor, *, block: int = 1 << 16) -> Tensor:
    """Inner products of [start, previous update, global step, client updates].

    The sum runs over blocks of the parameters in float64, to save memory.

    Args:
        start: The model that the clients received, shape (d,).
        previous: The update the server expected, client minus start in sign, shape (d,).
        step: New global model minus start, shape (d,).
        deltas: Clients minus start, shape (m, d).

    Returns:
        Symmetric matrix, shape (m + 3, m + 3), float64.
    """
    size = CLIENTS + len(deltas)
    total = torch.zeros(size, size, dtype=torch.float64)
    rows = torch.empty(size, min(block, start.numel()), dtype=torch.float64)
    for low in range(0, start.numel(), block):
        high = min(low + block, start.numel())
        part = rows[:, : high - low]
        for row, vector in enumerate((start, previous, step)):
            part[row] = vector[low:high]
        part[CLIENTS:] = deltas[:, low:high]
        total += part @ part.T
    return total
