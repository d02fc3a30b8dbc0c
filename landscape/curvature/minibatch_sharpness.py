"""Sharpness of minibatches: the largest eigenvalue of each batch's curvature, and their median."""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.curvature.curvature_products import Products
from landscape.curvature.hessian import pose
from landscape.curvature.krylov import Pair, starting, top
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
    curvature: str = "hessian",
    tolerance: float = 1e-2,
    max_products: int = 100,
    seed: int = 0,
    buffers: Tensor | None = None,
    block: int = 256,
) -> xr.Dataset:
    """Largest Hessian eigenvalue of single minibatches and its median over them; smaller means flatter.

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
        curvature: "hessian" or "gauss_newton".
        tolerance, max_products: Of one search, as in `landscape.curvature.krylov.top`.
        buffers: Floating buffers (b,) of the model; by default the model's own.
        block: Samples in one pass.

    Returns:
        Dataset with eigenvalue (batch,) and residual (batch,), median () and full (), NaN if not requested.
        Attributes: products spent, converged (1 or 0).

    Raises:
        ValueError: If batch or batches is below 1, or as `landscape.curvature.hessian.pose`.
    """
    if batch < 1 or (batches is not None and batches < 1):
        raise ValueError(f"batch is {batch} and batches {batches}; both must be at least 1.")
    posed = pose(task, theta, split=split, buffers=buffers, block=block, curvature=curvature)
    samples, like = posed.samples, posed.theta
    matrices = Products(posed.flat, like, samples, curvature=curvature, block=block)
    pieces = torch.randperm(len(samples), generator=torch.Generator().manual_seed(seed)).split(batch)[:batches]

    def searched(part: Samples) -> Pair:
        product, gradient = matrices.linearise(part)
        return top(product, starting(like, seed, gradient), tolerance=tolerance, max_products=max_products)

    pairs_by_batch = [searched(samples[piece]) for piece in pieces]
    values = np.array([pair.value for pair in pairs_by_batch])
    whole = searched(samples) if full else None
    pairs = pairs_by_batch if whole is None else [*pairs_by_batch, whole]
    name = f"largest {curvature.replace('_', '-')} eigenvalue"
    variables = {
        "eigenvalue": ("batch", values, f"{name} of a batch"),
        "residual": ("batch", [pair.residual for pair in pairs_by_batch], "||Hv - value v|| / |value|"),
        "median": ((), np.median(values), f"median over batches of the {name}"),
        "full": ((), np.nan if whole is None else whole.value, f"{name} of all data"),
    }
    spent, converged = sum(pair.products for pair in pairs), all(pair.residual <= tolerance for pair in pairs)
    about = {"analysis": "minibatch_sharpness", "source": "LSS paper, Table 7", "curvature": curvature}
    coords = {"batch": np.arange(len(pieces))}
    return labelled(variables, {**about, "products": spent, "converged": int(converged)}, coords)
