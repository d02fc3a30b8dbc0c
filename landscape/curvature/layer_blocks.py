"""Curvature by layer: the largest eigenvalue of each parameter tensor's diagonal block."""

from __future__ import annotations

from math import prod

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.curvature.curvature_products import product
from landscape.curvature.hessian import pose
from landscape.curvature.krylov import top
from landscape.model.task import Split, Task
from landscape.model.vectors import takes_models
from landscape.results.labelled import labelled


@takes_models("theta")
def layer_eigenvalues(
    task: Task,
    theta: Tensor,
    *,
    split: Split = "train",
    curvature: str = "hessian",
    tolerance: float = 1e-2,
    max_products: int = 100,
    seed: int = 0,
    buffers: Tensor | None = None,
    block: int = 256,
) -> xr.Dataset:
    """Eigenvalue of largest magnitude of the Hessian's diagonal block of every parameter tensor.

    It is the largest curvature along changes of this tensor only.

    Args:
        task: Model, loss and samples.
        split: Samples that the numbers are averaged over.
        seed: Seed of the random draws.
        theta: Model, shape (d,).
        curvature: "hessian" or "gauss_newton".
        tolerance, max_products: Of one block, as in `landscape.curvature.krylov.top`.
        buffers: Floating buffers (b,) of the model; by default the model's own.
        block: Samples in one pass.

    Returns:
        Dataset with eigenvalue (layer,), residual (layer,) and size (layer,) in parameters; `layer` holds the tensors'
        names. Attribute: products spent.

    Raises:
        ValueError: As `landscape.curvature.hessian.pose`.
    """
    posed = pose(task, theta, split=split, buffers=buffers, block=block, curvature=curvature)
    matrix, generator, pairs = product(posed), torch.Generator().manual_seed(seed), []
    places = task.layout.slices()
    for place in places.values():

        def within(part: Tensor, place: slice = place) -> Tensor:
            vector = torch.zeros_like(posed.theta)
            vector[place] = part
            return matrix(vector)[place]

        size = place.stop - place.start
        start = torch.randn(size, generator=generator, dtype=torch.float64).to(posed.theta)
        pairs.append(top(within, start, tolerance=tolerance, max_products=max_products))
    sizes = [prod(shape) for _, shape in task.layout.parameters]
    kind = f"largest {curvature.replace('_', '-')} eigenvalue of the block"
    variables = {
        "eigenvalue": ("layer", [pair.value for pair in pairs], kind),
        "residual": ("layer", [pair.residual for pair in pairs], "||Hv - value v|| / |value|"),
        "size": ("layer", sizes, "parameters"),
    }
    about = {"analysis": "layer_eigenvalues", "source": "this project", "curvature": curvature}
    spent = sum(pair.products for pair in pairs)
    return labelled(variables, {**about, "products": spent}, {"layer": np.array(list(places))})
