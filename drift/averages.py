"""Averages of fewer or more of a cohort's models, and how alike the models are (IMA paper, Fig. 4)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import xarray as xr
from torch import Tensor

from drift.run import Run
from drift.series import shares
from drift.terrain import chosen, present, spread
from landscape.batchnorm import Statistics
from landscape.ensemble import subset_errors
from landscape.progress import counted
from landscape.similarity import mean_cka


def error_averaged(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    subsets: int = 20,
    split: str = "test",
    statistics: Statistics | None = None,
) -> xr.Dataset:
    """Test error and loss of the mean of s of the cohort's client models, for s = 1..m, over rounds.

    Batch statistics of a mean as in `round_plane`; with statistics = "averaged" the mean of the whole cohort is the
    global model that FedAvg recorded.

    Source: IMA paper, Fig. 4; methods.md 3.2.6.
    """
    indices = spread(run.kept("clients"), 3) if rounds is None else [chosen(run, index, "clients") for index in rounds]
    found = []
    for index in counted(indices, run.progress):
        record = run.round(index)
        weights = shares(run.experiment, record)
        some = weights > 0  # a client without samples has no part in any mean
        found.append(
            subset_errors(
                run.task,
                record.kept("clients")[some],
                weights[some],
                subsets=subsets,
                seed=index,
                split=split,
                buffers=record.client_buffers[some],
                statistics=statistics,
            )
        )
    stacked = xr.concat(found, "round", join="outer").assign_coords(round=indices)
    return stacked.assign_attrs(analysis="error_averaged", source="IMA paper, Fig. 4")


def similarity_rounds(
    run: Run, *, rounds: Sequence[int] | None = None, kernel: str = "linear", split: str = "test"
) -> xr.Dataset:
    """Mean CKA of the outputs of the cohort's client models over rounds.

    Source: IMA paper, Fig. 4; methods.md 3.2.5.
    """
    indices = spread(run.kept("clients"), 10) if rounds is None else [chosen(run, index, "clients") for index in rounds]
    values = []
    for index in counted(indices, run.progress):
        record = run.round(index)
        values.append(mean_cka(_outputs(run, record.kept("clients"), record.client_buffers, split), kernel=kernel))
    found = xr.Dataset({"cka": ("round", values)}, coords={"round": indices})
    found.cka.attrs.update(long_name=f"mean {kernel} CKA of client pairs", units="1")
    return found.assign_attrs(analysis="similarity_rounds", source="IMA paper, Fig. 4", split=split)


def _outputs(run: Run, models: Tensor, buffers: Tensor, split: str) -> Tensor:
    """Outputs (m, n, C) of several models."""
    held = [present(row) for row in buffers]
    return torch.stack([run.task.outputs(theta, split, buffers=b) for theta, b in zip(models, held, strict=True)])
