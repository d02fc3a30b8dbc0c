"""What is odd about the batch statistics of a run's global model: negative variances, those of one client alone."""

from __future__ import annotations

import torch

from drift.runs.run import Run
from drift.store import paths
from drift.store.file_layout import read_header
from drift.store.round_record import Round
from landscape.model.buffers import VARIANCE, negative_variance
from landscape.model.layout import Layout
from landscape.model.model import buffers_of


def statistics_remark(run: Run) -> str:
    """A sentence about the last global model that was kept; empty if nothing is odd or no model was kept."""
    if not (rounds := run.kept("globals")) or not _has_buffers(run, rounds[-1]):
        return ""
    record = run.round(rounds[-1])
    if record.end is None or (buffers := buffers_of(record.end)) is None:
        return ""
    if layer := negative_variance(buffers, _layout(run)):
        return (
            f"{VARIANCE} of layer {layer} is negative in the global model of round {record.index}, which has no loss "
            "(a server optimiser moved it)"
        )
    if (client := _only_client(record)) is not None:
        return f"the batch statistics of the global model of round {record.index} are those of client {client} alone"
    return ""


def _has_buffers(run: Run, index: int) -> bool:
    """Whether a round states buffers of its global model; its models are not read."""
    with open(paths.round_path(run.folder, index), "rb", buffering=0) as file:
        place = read_header(file).places.get("end_buffers")
    return place is None or place.end > place.begin


def _layout(run: Run) -> Layout:
    """Layout of the run's model; a recorded run states it, a trained one makes its model."""
    if "buffers" not in run.about:
        return run.task.layout
    parameters, buffers = (tuple((name, tuple(shape)) for name, shape in run.about[key]) for key in _ENTRIES)
    return Layout(parameters, buffers)


_ENTRIES = ("layout", "buffers")


def _only_client(record: Round) -> int | None:
    """The one client of several whose buffers the global model has; None if there is none, or all have the same."""
    rows = record.client_buffers
    if len(rows) < 2 or rows.shape[-1] != record.end_buffers.shape[-1]:
        return None
    same = (rows == record.end_buffers).all(1)
    return int(record.ids[same][0]) if int(same.sum()) == 1 and bool(torch.isfinite(rows).all()) else None
