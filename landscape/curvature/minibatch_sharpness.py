"""Sharpness of minibatches: the largest eigenvalue of each batch's curvature, and their median."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.curvature.curvature_products import linearise_on, require_symmetry
from landscape.curvature.hessian import CURVATURES, RESIDUAL, SPOKEN, pose
from landscape.curvature.krylov import Eigenpairs, extreme, starting
from landscape.model.samples import Samples
from landscape.model.task import Split, Task
from landscape.model.vectors import takes_models
from landscape.results.labelled import labelled


@takes_models("theta")
def minibatch_sharpness(
    task: Task,
    theta: Tensor,
    *,
    split: Split = "train",
    batch: int = 64,
    batches: int | None = None,
    full: bool = False,
    which: str = "magnitude",
    curvature: str = "hessian",
    tolerance: float = 1e-2,
    max_products: int = 100,
    seed: int = 0,
    buffers: Tensor | None = None,
    block: int = 256,
) -> xr.Dataset:
    """Largest Hessian eigenvalue of single minibatches and its median over them; smaller means flatter.

    The largest in magnitude, unless `which` says another.

    Each search starts from the batch's gradient mixed with a random vector, so that no batch depends on another (the
    eigenvector of the batch before saves no more products than the gradient does).

    Source: LSS paper, Table 7, which takes the median; its published code takes the full data instead (`full`).

    Args:
        task: Model, loss and samples.
        split: Samples that the numbers are averaged over.
        seed: Seed of the random draws.
        theta: Model, shape (d,).
        batch: Samples in a batch; the split is shuffled, and the last batch may be smaller.
        batches: Number of batches; None for all.
        full: Also the eigenvalue of the mean loss over the whole split.
        which: "magnitude", "largest" or "smallest".
        curvature: "hessian" or "gauss_newton".
        tolerance, max_products: Of one search, as in `landscape.top_eigenvalues`.
        buffers: Floating buffers (b,) of the model; by default the model's own.
        block: Samples in one pass.

    Returns:
        Dataset with eigenvalue, measured residual and converged (batch,); median (), NaN unless all batches converged;
        full (), NaN if not requested or not converged, and full_residual (). An eigenvalue is NaN where not converged.
        Attribute: products spent.

    Raises:
        ValueError: If batch or batches is below 1, `which` is unknown, or as `landscape.curvature.hessian.pose`.
    """
    if batch < 1 or (batches is not None and batches < 1):
        raise ValueError(f"batch is {batch} and batches {batches}; both must be at least 1.")
    posed = pose(task, theta, split=split, buffers=buffers, block=block, curvature=curvature)
    samples = posed.samples
    require_symmetry(posed)
    pieces = torch.randperm(len(samples), generator=torch.Generator().manual_seed(seed)).split(batch)[:batches]

    def searched(batch: Samples) -> Eigenpairs:
        product, gradient = linearise_on(posed, batch)
        options: dict[str, Any] = {"which": which, "tolerance": tolerance, "max_products": max_products}
        return extreme(product, starting(posed.theta, seed, gradient), 1, **options, vectors=False)

    pairs = [searched(samples[piece]) for piece in pieces]
    values = np.array([pair.values.item() for pair in pairs])
    full_pairs = searched(samples) if full else None
    name = f"{SPOKEN[which]} {CURVATURES[curvature]} eigenvalue"
    variables = {
        "eigenvalue": ("batch", values, f"{name} of a batch"),
        "residual": ("batch", [pair.residuals.item() for pair in pairs], RESIDUAL),
        "converged": ("batch", [bool(pair.converged) for pair in pairs], "residual within the tolerance"),
        "median": ((), np.median(values), f"median over batches of the {name}"),
        "full": ((), np.nan if full_pairs is None else full_pairs.values.item(), f"{name} of all data"),
        "full_residual": ((), np.nan if full_pairs is None else full_pairs.residuals.item(), f"{RESIDUAL} of all data"),
    }
    spent = sum(pair.products for pair in pairs) + (0 if full_pairs is None else full_pairs.products)
    about = {"analysis": "minibatch_sharpness", "source": "LSS paper, Table 7", "which": which, "curvature": curvature}
    return labelled(variables, {**about, "products": spent}, {"batch": np.arange(len(pieces))})
