"""What is odd about the batch statistics of a run's global model: negative variances, those of one client alone."""

from __future__ import annotations

import torch

from drift.runs.run import Run
from drift.store.round_record import Round
from landscape.model.buffers import VARIANCE, negative_variance
from landscape.model.model import buffers_of


def statistics_remark(run: Run) -> str:
    """A sentence about the last global model that was kept; empty if nothing is odd or no model was kept."""
    if not (rounds := run.kept("globals")):
        return ""
    record = run.round(rounds[-1])
    if record.end is None or (buffers := buffers_of(record.end)) is None:
        return ""
    if layer := negative_variance(buffers, run.task.layout):
        return (
            f"{VARIANCE} of layer {layer} is negative in the global model of round {record.index}, which has no loss "
            "(a server optimiser moved it)"
        )
    if (client := _only_client(record)) is not None:
        return f"the batch statistics of the global model of round {record.index} are those of client {client} alone"
    return ""


def _only_client(record: Round) -> int | None:
    """The one client of several whose buffers the global model has; None if there is none, or all have the same."""
    rows = record.client_buffers
    if len(rows) < 2 or rows.shape[-1] != record.end_buffers.shape[-1]:
        return None
    same = (rows == record.end_buffers).all(1)
    return int(record.ids[same][0]) if int(same.sum()) == 1 and bool(torch.isfinite(rows).all()) else None
