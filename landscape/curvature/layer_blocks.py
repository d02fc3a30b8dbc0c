"""Curvature by layer: the largest eigenvalue of each parameter tensor's diagonal block."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.curvature.curvature_products import product
from landscape.curvature.hessian import CURVATURES, RESIDUAL, SPOKEN, pose
from landscape.curvature.krylov import extreme, starting
from landscape.model.task import Split, Task
from landscape.model.vectors import takes_models
from landscape.results.labelled import labelled


@takes_models("theta")
def layer_eigenvalues(
    task: Task,
    theta: Tensor,
    *,
    split: Split = "train",
    which: str = "magnitude",
    curvature: str = "hessian",
    tolerance: float = 1e-2,
    max_products: int = 100,
    seed: int = 0,
    buffers: Tensor | None = None,
    block: int = 256,
) -> xr.Dataset:
    """An extreme eigenvalue of the Hessian's diagonal block of every parameter tensor.

    It is the curvature along changes of this tensor only; by default the one of largest magnitude.

    Args:
        task: Model, loss and samples.
        split: Samples that the numbers are averaged over.
        seed: Seed of the random draws.
        theta: Model, shape (d,).
        which: "magnitude", "largest" or "smallest".
        curvature: "hessian" or "gauss_newton".
        tolerance, max_products: Of one block, as in `landscape.top_eigenvalues`.
        buffers: Floating buffers (b,) of the model; by default the model's own.
        block: Samples in one pass.

    Returns:
        Dataset with eigenvalue, measured residual, converged and size in parameters, each (layer,); `layer` holds the
        tensors' names. An eigenvalue is NaN where not converged. Attribute: products spent.

    Raises:
        ValueError: If `which` is unknown, or as `landscape.curvature.hessian.pose`.
    """
    posed = pose(task, theta, split=split, buffers=buffers, block=block, curvature=curvature)
    matrix = product(posed)
    pairs: list[Any] = []
    options: dict[str, Any] = {"which": which, "tolerance": tolerance, "max_products": max_products, "vectors": False}
    spans = task.layout.slices()
    for span in spans.values():

        def within(block: Tensor, span: slice = span) -> Tensor:
            vector = torch.zeros_like(posed.theta)
            vector[span] = block
            return matrix(vector)[span]

        pairs.append(extreme(within, starting(posed.theta[span], seed + len(pairs)), 1, **options))
    sizes = [prod(shape) for _, shape in task.layout.parameters]
    kind = f"{SPOKEN[which]} {CURVATURES[curvature]} eigenvalue of the block"
    variables = {
        "eigenvalue": ("layer", [pair.values.item() for pair in pairs], kind),
        "residual": ("layer", [pair.residuals.item() for pair in pairs], RESIDUAL),
        "converged": ("layer", [bool(pair.converged) for pair in pairs], "residual within the tolerance"),
        "size": ("layer", sizes, "parameters"),
    }
    about = {"analysis": "layer_eigenvalues", "source": "this project", "which": which, "curvature": curvature}
    spent = sum(pair.products for pair in pairs)
    return labelled(variables, {**about, "products": spent}, {"layer": np.array(list(spans))})
