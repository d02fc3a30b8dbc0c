"""Largest Hessian eigenvalue per layer at a run's global models."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from drift.analyses.per_round import GlobalModel, join_global_models
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.curvature.layer_blocks import layer_eigenvalues


@analysis("round", "layer", cost="curvature")
def layer_rounds(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    split: str = "train",
    curvature: str = "hessian",
    tolerance: float = 1e-2,
    max_products: int = 100,
) -> xr.Dataset:
    """Largest eigenvalue of the Hessian's diagonal block of each parameter tensor, at global models over rounds.

    With ReLU the outputs are piecewise linear in one tensor, so that both kinds of curvature are equal.

    Source: this project; the blocks of `landscape.layer_eigenvalues`.

    Args:
        run: Run to analyse.
        rounds: Rounds of the global models; by default three, evenly spaced.
        split: Samples that the loss is averaged over.
        curvature: "hessian" or "gauss_newton".
        tolerance, max_products: Of one block.

    Returns:
        Dataset with eigenvalue and residual (round, layer), largest in magnitude, and size (layer) in parameters.

    Raises:
        LookupError: If the run kept no global model.
        ValueError: If the curvature is unknown.
    """

    def compute(model: GlobalModel) -> xr.Dataset:
        return layer_eigenvalues(
            run.task,
            model.theta,
            split=split,
            curvature=curvature,
            tolerance=tolerance,
            max_products=max_products,
            seed=model.index,
            buffers=model.buffers,
        )

    attrs = {"split": split, "curvature": curvature}
    dataset = join_global_models(run, rounds, 3, compute, analysis="layer_rounds", source="this project", **attrs)
    return dataset.assign(size=dataset["size"].isel(round=0, drop=True))
