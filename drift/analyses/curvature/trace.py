"""Trace of the Hessian and of the Gauss-Newton matrix at a run's global models."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from drift.analyses.per_round import buffers_or_none, selected_rounds
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.curvature.hessian import CURVATURES
from landscape.curvature.trace import trace
from landscape.results.progress import with_progress


@analysis("round", cost="curvature")
def trace_rounds(
    run: Run, *, rounds: Sequence[int] | None = None, split: str = "train", products: int = 60, seed: int = 0
) -> xr.Dataset:
    """Trace and norm of the Hessian and of the Gauss-Newton matrix of the global model over rounds.

    Their difference is the curvature of the model itself, weighted by the errors that it still makes.

    Source: Meyer et al. 2021, Hutch++, algorithm 1; see `landscape.trace`.

    Args:
        rounds: Rounds looked at; by default five, evenly spread.
        split: Samples that the loss is averaged over.
        products: Matrix-vector products at most for each matrix; exact where the model has no more parameters.
        seed: Of the random vectors.

    Returns:
        Dataset with trace, standard_error and frobenius (round,) of the Hessian, and the same with gauss_newton_
        before the name; parameters (), d.

    Raises:
        LookupError: If the run kept no global model.
    """
    indices = selected_rounds(run, "globals", rounds, 5)
    if not indices:
        raise LookupError(f"run {run.name} kept no global model; train it with --set keep.globals=all.")
    found = []
    for index in with_progress(indices, run.context.progress):
        record = run.round(index)
        theta, buffers, both = record.kept("end"), buffers_or_none(record.end_buffers), xr.Dataset()
        for curvature, prefix in zip(CURVATURES, ("", "gauss_newton_"), strict=True):
            one = trace(
                run.task, theta, split=split, curvature=curvature, products=products, seed=seed, buffers=buffers
            )
            both = both.merge(one.rename({name: f"{prefix}{name}" for name in one.data_vars}))
        found.append(both)
    joined = xr.concat(found, "round", join="exact", combine_attrs="drop_conflicts").assign_coords(round=indices)
    joined["parameters"] = ((), run.task.layout.size, {"long_name": "parameters", "units": "1"})
    about = {"analysis": "trace_rounds", "source": "Meyer et al. 2021, Hutch++, algorithm 1", "split": split}
    return joined.assign_attrs(about)
