"""The loss around a global model, along two random directions."""

from __future__ import annotations

import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.per_round import buffers_or_none, resolve_round
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
        round: Round of the global model; negative counts from the last one that kept it.
        points, radius: Grid points an axis, and the largest coordinate in filter norms.
        seed: Of the directions: the same for all runs of one model.
        split: Samples that loss (nats) and error (fraction) are averaged over.
        partial: Where an unfinished result lies.

    Raises:
        LookupError: If the round kept no global model.
    """
    record = run.round(resolve_round(run, round, "globals"))
    sweep = random_sweep(
        run.task,
        record.kept("end"),
        seed=seed,
        points=points,
        radius=radius,
        label=f"round {record.index}",
        buffers=buffers_or_none(record.end_buffers),
    )
    return evaluate_on(run, sweep, split, partial).assign_attrs(analysis="random_plane", round=record.index)
