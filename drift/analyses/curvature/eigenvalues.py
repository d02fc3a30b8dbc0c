"""Largest Hessian eigenvalues of a run's global models, and the loss along the sharpest direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.per_round import buffers_or_none, resolve_round, selected_rounds
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.curvature.hessian import top_eigenvalues
from landscape.geometry.directions import slice_along
from landscape.results.progress import with_progress


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
        rounds: Rounds looked at; by default five, evenly spread.
        k: Eigenvalues a round.
        split: Samples that the Hessian is averaged over.
        tolerance: Relative error of the eigenvalues.
        curvature: "hessian" or "gauss_newton".
        backend: "native", "curvlinops" or "pyhessian", as in `landscape.top_eigenvalues`.
    """
    indices = selected_rounds(run, "globals", rounds, 5)
    found = []
    for index in with_progress(indices, run.context.progress):
        record = run.round(index)
        values = top_eigenvalues(
            run.task,
            record.kept("end"),
            k,
            split=split,
            backend=backend,
            curvature=curvature,
            tolerance=tolerance,
            buffers=buffers_or_none(record.end_buffers),
        )
        found.append(values.eigenvalue)
    values = xr.concat(found, "round", join="exact").assign_coords(round=indices)
    ratio = values.isel(rank=0, drop=True) / values.isel(rank=-1, drop=True)
    ratio.attrs.update(long_name=f"lambda_1 / lambda_{k}", units="1")
    about = {"analysis": "eigen_rounds", "source": "FedLAW paper, Fig. 10", "split": split, "curvature": curvature}
    return xr.Dataset({"eigenvalue": values, "ratio": ratio}, attrs={**about, "backend": backend})


@analysis("mark", "t", cost="curvature")
def eigen_slice(
    run: Run, *, round: int = -1, radius: float = 0.5, points: int = 41, split: str = "train"
) -> xr.Dataset:
    """Loss and error along the unit eigenvector of the largest Hessian eigenvalue of a global model.

    Source: FedLAW paper, Fig. 4 right.

    Args:
        round: Round of the global model.
        radius, points: The slice reaches from -radius to radius (parameter-space length).
        split: Samples of the Hessian and of the slice.
    """
    record = run.round(resolve_round(run, round, "globals"))
    theta = record.kept("end")
    top = top_eigenvalues(run.task, theta, 1, split=split, vectors=True, buffers=buffers_or_none(record.end_buffers))
    direction = torch.from_numpy(top.eigenvector.isel(rank=0).values).to(theta)
    sweep = slice_along(theta, direction, points=points, radius=radius)
    if len(record.end_buffers):  # the same batch statistics all along the slice
        held = torch.zeros(len(sweep.basis), len(record.end_buffers))
        held[0] = record.end_buffers
        sweep = replace(sweep, buffers=held)
    found = evaluate_on(run, sweep, split, None)
    return found.assign(eigenvalue=top.eigenvalue.isel(rank=0, drop=True)).assign_attrs(
        analysis="eigen_slice", source="FedLAW paper, Fig. 4 right", round=record.index
    )
