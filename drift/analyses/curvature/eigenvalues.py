"""Largest Hessian eigenvalues of a run's global models, and the loss along the sharpest direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.per_round import GlobalModel, global_model, join_global_models, result
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.curvature.hessian import top_eigenvalues
from landscape.geometry.directions import slice_along


@analysis("round", "rank", cost="curvature")
def eigen_rounds(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    k: int = 5,
    split: str = "train",
    tolerance: float = 1e-3,
    curvature: str = "hessian",
    backend: str = "native",
) -> xr.Dataset:
    """Largest Hessian eigenvalues of the global model over rounds, and the ratio of the first to the k-th.

    Source: FedLAW paper, Fig. 10.

    Args:
        run: Run to analyse.
        rounds: Rounds of the global models; by default five, evenly spaced.
        k: Number of eigenvalues per round.
        split: Samples that the Hessian is averaged over.
        tolerance: Relative error of the eigenvalues.
        curvature: "hessian" or "gauss_newton".
        backend: "native", "curvlinops" or "pyhessian", as in `landscape.top_eigenvalues`.
    """

    def compute(model: GlobalModel) -> xr.Dataset:
        dataset = top_eigenvalues(
            run.task,
            model.theta,
            k,
            split=split,
            backend=backend,
            curvature=curvature,
            tolerance=tolerance,
            buffers=model.buffers,
        )
        return dataset[["eigenvalue"]].drop_attrs(deep=False)

    attrs = {"split": split, "curvature": curvature, "backend": backend}
    dataset = join_global_models(
        run, rounds, 5, compute, analysis="eigen_rounds", source="FedLAW paper, Fig. 10", **attrs
    )
    dataset["ratio"] = dataset.eigenvalue.isel(rank=0, drop=True) / dataset.eigenvalue.isel(rank=-1, drop=True)
    return result(dataset, {"ratio": (f"lambda_1 / lambda_{k}", "1")})


@analysis("mark", "t", cost="curvature")
def eigen_slice(
    run: Run, *, round: int = -1, radius: float = 0.5, points: int = 41, split: str = "train"
) -> xr.Dataset:
    """Loss and error along the unit eigenvector of the largest Hessian eigenvalue of a global model.

    Source: FedLAW paper, Fig. 4 right.

    Args:
        run: Run to analyse.
        round: Round of the global model.
        radius, points: The slice reaches from -radius to radius (parameter-space length).
        split: Samples of the Hessian and of the slice.
    """
    model = global_model(run, round)
    top = top_eigenvalues(run.task, model.theta, 1, split=split, vectors=True, buffers=model.buffers)
    direction = torch.from_numpy(top.eigenvector.isel(rank=0).values).to(model.theta)
    sweep = slice_along(model.theta, direction, points=points, radius=radius)
    if model.buffers is not None:  # the same batch statistics all along the slice
        buffers = torch.zeros(len(sweep.basis), len(model.buffers))
        buffers[0] = model.buffers
        sweep = replace(sweep, buffers=buffers)
    dataset = evaluate_on(run, sweep, split).assign(eigenvalue=top.eigenvalue.isel(rank=0, drop=True))
    return dataset.assign_attrs(analysis="eigen_slice", source="FedLAW paper, Fig. 4 right", round=model.index)
