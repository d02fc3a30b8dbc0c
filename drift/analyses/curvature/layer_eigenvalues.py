"""Curvature by layer at a run's global models."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from drift.analyses.per_round import buffers_or_none, selected_rounds
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.curvature.layer_blocks import layer_eigenvalues
from landscape.results.progress import with_progress


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
        rounds: Rounds looked at; by default three, evenly spread.
        split: Samples that the loss is averaged over.
        curvature: "hessian" or "gauss_newton".
        tolerance, max_products: Of one block.

    Returns:
        Dataset with eigenvalue and residual (round, layer), largest in magnitude, and size (layer) in parameters.

    Raises:
        LookupError: If the run kept no global model.
        ValueError: If the curvature is unknown.
    """
    indices = selected_rounds(run, "globals", rounds, 3)
    if not indices:
        raise LookupError(f"run {run.name} kept no global model; train it with --set keep.globals=all.")
    found = []
    for index in with_progress(indices, run.context.progress):
        record = run.round(index)
        found.append(
            layer_eigenvalues(
                run.task,
                record.kept("end"),
                split=split,
                curvature=curvature,
                tolerance=tolerance,
                max_products=max_products,
                seed=index,
                buffers=buffers_or_none(record.end_buffers),
            )
        )
    size = found[0]["size"]
    joined = xr.concat([one.drop_vars("size") for one in found], "round", join="exact", combine_attrs="drop_conflicts")
    about = {"analysis": "layer_rounds", "source": "this project", "split": split, "curvature": curvature}
    return joined.assign_coords(round=indices).assign(size=size).assign_attrs(about)
