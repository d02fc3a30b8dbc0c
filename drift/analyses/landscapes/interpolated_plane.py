"""A plane through three clients from a tenth of its points, with a smooth interpolant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.landscapes.planes import client_sweep
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.model.batchnorm import Statistics
from landscape.results.zarr_files import Partial
from landscape.surfaces.interpolated_surface import interpolated_surface


@analysis("mark", "alpha", "beta", cost="evaluations")
def interpolated_plane(
    run: Run,
    *,
    round: int = -1,
    clients: Sequence[int] | None = None,
    points: int = 41,
    margin: float = 0.3,
    box: str = "marks",
    tolerance: float = 0.01,
    budget: int | None = None,
    split: str = "test",
    statistics: Statistics | None = None,
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss and error on the plane through three clients of one round, evaluated on a coarse lattice, else interpolated.

    `round_plane` evaluates every point. Here a lattice is refined until the next points are predicted well enough; the
    result marks what is interpolated and states the error, as `landscape.interpolated_surface` does.

    Source: IMA paper, section 3.2, Fig. 1.

    Args:
        run: Run to analyse.
        round, clients, points, margin, box, split, statistics: As in `round_plane`.
        tolerance: Largest accepted error of the log loss, as a share of its range on the plane.
        budget: Points evaluated at most; by default all.
        partial: Unfinished result to go on from.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the cohort does not hold three such clients.
    """
    record, _, sweep = client_sweep(run, round, clients, points=points, margin=margin, box=box)
    options: dict[str, Any] = {"tolerance": tolerance, "budget": budget, "statistics": statistics}
    dataset = evaluate_on(run, sweep, split, partial, interpolate=interpolated_surface, **options)
    return dataset.assign_attrs(analysis="interpolated_plane", round=record.index)
