"""The plane of two random directions around a global model."""

from __future__ import annotations

import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.per_round import global_model
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.geometry.directions import random_plane as random_sweep
from landscape.results.zarr_files import Partial


@analysis("mark", "alpha", "beta", cost="evaluations")
def random_plane(
    run: Run,
    *,
    round: int = -1,
    points: int = 21,
    radius: float = 1.0,
    seed: int = 0,
    split: str = "test",
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss and error on a plane of two filter-normalised random directions around the global model of a round.

    Source: Li et al. 2018, section 4.

    Args:
        run: Run to analyse.
        round: Round of the global model; negative counts from the last one that kept it.
        points, radius: Grid points per axis, and the largest coordinate in filter norms.
        seed: Of the directions: the same for all runs of one model.
        split: Samples that loss (nats) and error (fraction) are averaged over.
        partial: Unfinished result to go on from.

    Raises:
        LookupError: If the round kept no global model.
    """
    model = global_model(run, round)
    sweep = random_sweep(
        run.task,
        model.theta,
        seed=seed,
        points=points,
        radius=radius,
        label=f"round {model.index}",
        buffers=model.buffers,
    )
    return evaluate_on(run, sweep, split, partial).assign_attrs(analysis="random_plane", round=model.index)
