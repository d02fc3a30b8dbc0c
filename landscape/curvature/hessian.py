"""Curvature of the loss: Hessian-vector products and the Hessian's largest eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape import plugins
from landscape.curvature.lanczos import Eigenpairs
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples
from landscape.model.task import Split, Task
from landscape.model.vectors import takes_models
from landscape.results.labelled import labelled

CURVATURES = ("hessian", "gauss_newton")
"""Matrices of which eigenvalues, trace and density are computed; Gauss-Newton omits the curvature of the model."""


@dataclass(frozen=True)
class CurvatureProblem:
    """Input of a back end: the curvature of the mean loss of `samples` at `theta` (d,), in blocks of samples.

    Without `vectors`, a back end may return (0, d) vectors, which saves k of them in memory.
    """

    flat: Flat
    theta: Tensor
    samples: Samples
    block: int
    curvature: str = "hessian"
    vectors: bool = True


@takes_models("theta")
def top_eigenvalues(
    task: Task,
    theta: Tensor,
    k: int = 5,
    *,
    split: Split = "train",
    backend: str = "native",
    curvature: str = "hessian",
    tolerance: float = 1e-3,
    max_products: int = 500,
    seed: int = 0,
    buffers: Tensor | None = None,
    vectors: bool = False,
    block: int = 256,
) -> xr.Dataset:
    """Largest Hessian eigenvalues of the mean loss over a split, in eval mode; smaller means flatter.

    Largest in magnitude, sorted by falling magnitude, with their sign.

    Source: FedLAW Fig. 10 (top 1 and top 5); the LSS paper's Table 7 takes the median of the first one over batches,
    which is this function on single batches.

    Args:
        task: Model, loss and samples.
        split: Samples that the numbers are averaged over.
        seed: Seed of the random draws.
        theta: Model, shape (d,); its dtype and device are used.
        k: Number of eigenvalues.
        backend: "native" (Lanczos), "curvlinops" (its products in ARPACK) or "pyhessian" (power iteration with
            deflation, float32, Hessian only).
        curvature: "hessian" or "gauss_newton".
        tolerance: For "native" its square is the relative error expected of the values, and ||H v - value v|| / |value|
            is below it; for "pyhessian" the relative change of a value at which iteration stops. 1e-3 as in PyHessian.
        max_products: Hessian-vector products at most; 500 is the papers' 100 iterations for each of five values.
        buffers: Floating buffers (b,) of the model; by default the model's own.
        vectors: Also return eigenvectors.
        block: Samples in one gradient graph.

    Returns:
        Dataset with eigenvalue (rank,) and residual (rank,), ranks 1..k, and on request unit eigenvector
        (rank, parameter), whose entry of largest magnitude is positive. Attributes: products spent, converged (1 or 0).

    Raises:
        ValueError: If the back end is unknown, k is not in 1..d, the split is empty, or the loss is not finite.
        LookupError: If the back end's package is not installed.
    """
    solver = plugins.load("landscape.spectra", backend, "Hessian back end")
    if not 1 <= k <= theta.numel():
        raise ValueError(
            f"k is {k}, the model has {theta.numel()} parameters; ask for 1 to {theta.numel()} eigenvalues."
        )
    posed = replace(pose(task, theta, split=split, buffers=buffers, block=block, curvature=curvature), vectors=vectors)
    pairs = solver.eigenpairs(posed, k, tolerance=tolerance, max_products=max_products, seed=seed)
    return _dataset(pairs, backend, vectors).assign_attrs(curvature=curvature)


hessian = top_eigenvalues
"""The same by a shorter name: `landscape.hessian(task, model, k=5)`."""


def pose(
    task: Task,
    theta: Tensor,
    *,
    split: Split = "train",
    buffers: Tensor | None = None,
    block: int = 256,
    curvature: str = "hessian",
) -> CurvatureProblem:
    """The curvature of a model as a problem for back ends, on a private copy of the model in eval mode.

    Raises:
        ValueError: If the curvature is unknown or the split is empty.
    """
    if curvature not in CURVATURES:
        raise ValueError(plugins.unknown("curvature", curvature, CURVATURES))
    theta, samples = theta.detach(), task.split(split)
    flat = task.flat(theta)
    flat.load(theta, buffers)
    if len(samples) == 0:
        raise ValueError("the split has no samples; the Hessian of an empty mean is not defined.")
    return CurvatureProblem(flat, theta, samples, block, curvature)


@torch.no_grad()
def check_loss(flat: Flat, samples: Samples, *, block: int = 256) -> None:
    """Require finite losses of all samples at the theta of `flat`.

    Raises:
        ValueError: If a loss is not finite; names the sample.
    """
    targets = samples.targets.to(flat.theta.device)
    for start, part in zip(range(0, len(samples), block), samples.blocks(block), strict=True):
        losses = flat.loss(flat.outputs(part.inputs), targets[start : start + block])
        if not losses.isfinite().all():
            bad = start + int((~losses.isfinite()).nonzero()[0, 0])
            raise ValueError(
                f"the loss of sample {bad} is {losses[bad - start].item()}; the model must be finite there."
            )


def _dataset(pairs: Eigenpairs, backend: str, vectors: bool) -> xr.Dataset:
    variables: dict[str, tuple] = {
        "eigenvalue": ("rank", pairs.values.numpy(), "Hessian eigenvalue"),
        "residual": ("rank", pairs.residuals.numpy(), "||Hv - value v|| / |value|"),
    }
    if vectors:
        variables["eigenvector"] = (("rank", "parameter"), pairs.vectors.cpu().numpy(), "Hessian eigenvector")
    about = {"analysis": "top_eigenvalues", "source": "FedLAW Fig. 10", "backend": backend}
    coords = {"rank": np.arange(1, len(pairs.values) + 1)}
    return labelled(variables, {**about, "products": pairs.products, "converged": int(pairs.converged)}, coords)
