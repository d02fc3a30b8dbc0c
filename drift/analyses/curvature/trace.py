"""Trace of the Hessian and of the Gauss-Newton matrix at a run's global models."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from drift.analyses.per_round import GlobalModel, join_global_models, result
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.curvature.hessian import CURVATURES
from landscape.curvature.trace import trace


@analysis("round", cost="curvature")
def trace_rounds(
    run: Run, *, rounds: Sequence[int] | None = None, split: str = "train", products: int = 60, seed: int = 0
) -> xr.Dataset:
    """Trace and norm of the Hessian and of the Gauss-Newton matrix of the global model over rounds.

    Their difference is the curvature of the model itself, weighted by its remaining errors.

    Source: Meyer et al. 2021, Hutch++, algorithm 1; see `landscape.trace`.

    Args:
        run: Run to analyse.
        rounds: Rounds of the global models; by default five, evenly spaced.
        split: Samples that the loss is averaged over.
        products: Largest number of matrix-vector products per matrix; exact where the model has no more parameters.
        seed: Of the random vectors.

    Returns:
        Dataset with trace, standard_error and frobenius (round,) of the Hessian, and the same of the Gauss-Newton
        matrix with the prefix gauss_newton_; parameters (), d.

    Raises:
        LookupError: If the run kept no global model.
    """

    def compute(model: GlobalModel) -> xr.Dataset:
        joined = xr.Dataset()
        for curvature, prefix in zip(CURVATURES, ("", "gauss_newton_"), strict=True):
            part = trace(
                run.task,
                model.theta,
                split=split,
                curvature=curvature,
                products=products,
                seed=seed,
                buffers=model.buffers,
            )
            joined = joined.merge(part.rename({name: f"{prefix}{name}" for name in part.data_vars}))
        return joined

    source = "Meyer et al. 2021, Hutch++, algorithm 1"
    dataset = join_global_models(run, rounds, 5, compute, analysis="trace_rounds", source=source, split=split)
    dataset["parameters"] = run.task.layout.size
    return result(dataset, {"parameters": ("parameters", "1")})
