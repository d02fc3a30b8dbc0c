"""Averages of fewer or more of a cohort's models, and how alike the models are (IMA paper, Fig. 4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.per_round import buffers_or_none, selected_rounds
from drift.config.cohort_weights import cohort_weights
from drift.config.random_keys import rng
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.simulation.verify import spans
from landscape.measures.ensemble import subset_errors
from landscape.measures.similarity import mean_cka
from landscape.model.batchnorm import Statistics
from landscape.model.samples import Samples
from landscape.results.progress import with_progress

RBF_SAMPLES = 1000
"""Inputs that outputs are compared on by the RBF kernel where no number is given."""


@analysis("round", "models", "draw", cost="evaluations")
def error_averaged(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    subsets: int = 20,
    split: str = "test",
    statistics: Statistics | None = None,
) -> xr.Dataset:
    """Test error and loss of the mean of s of the cohort's client models, for s = 1..m, over rounds.

    Rounds in which every client diverged are left out.

    Batch statistics of a mean as in `round_plane`; with statistics = "averaged" the mean of the whole cohort is the
    global model that FedAvg recorded.

    Source: IMA paper, Fig. 4; methods.md 3.2.6.
    """
    indices = selected_rounds(run, "clients", rounds, 3)
    found, seen = [], []
    for index in with_progress(indices, run.context.progress):
        record = run.round(index)
        if not len(record.ids):
            continue
        seen.append(index)
        weights = cohort_weights(run.experiment, record.sizes)
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
                workers=run.context.pool or 1,
            )
        )
    if not found:
        raise LookupError(f"every client diverged in rounds {spans(indices)} of run {run.name}; name others.")
    stacked = xr.concat(found, "round", join="outer").assign_coords(round=seen)
    return stacked.assign_attrs(analysis="error_averaged", source="IMA paper, Fig. 4")


@analysis("round", cost="evaluations")
def similarity_rounds(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    kernel: str = "linear",
    split: str = "test",
    samples: int | None = None,
) -> xr.Dataset:
    """Mean CKA of the outputs of the cohort's client models over rounds; NaN where fewer than two are left.

    Source: IMA paper, Fig. 4; methods.md 3.2.5.

    Args:
        kernel: "linear" or "rbf".
        samples: Inputs that outputs are compared on, always the same draw; by default all, 1000 for rbf, which holds
            their number squared for each client.
    """
    indices = selected_rounds(run, "clients", rounds, 10)
    held = run.task.split(split)
    wanted = samples if samples is not None else RBF_SAMPLES if kernel == "rbf" else len(held)
    if wanted < len(held):
        drawn = rng(run.experiment.seed, "similarity").permutation(len(held))[:wanted]
        held = held[torch.from_numpy(np.sort(drawn))]
    values = []
    for index in with_progress(indices, run.context.progress):
        record = run.round(index)
        outputs = _outputs(run, record.kept("clients"), record.client_buffers, held)
        values.append(mean_cka(outputs, kernel=kernel) if len(outputs) > 1 else float("nan"))
    found = xr.Dataset({"cka": ("round", values)}, coords={"round": indices})
    found.cka.attrs.update(long_name=f"mean {kernel} CKA of client pairs", units="1")
    about = {"analysis": "similarity_rounds", "source": "IMA paper, Fig. 4", "split": split}
    return found.assign_attrs(about, samples=len(held))


def _outputs(run: Run, models: Tensor, buffers: Tensor, samples: Samples) -> Tensor:
    """Outputs (m, n, C) of several models."""
    pairs = zip(models, buffers, strict=True)
    found = [run.task.outputs(theta, samples, buffers=buffers_or_none(held)) for theta, held in pairs]
    return torch.stack(found) if found else torch.zeros(0, len(samples), 1)
