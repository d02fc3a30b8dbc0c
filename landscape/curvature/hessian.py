"""Curvature of the loss: the extreme eigenvalues of its Hessian."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape import plugins
from landscape.curvature.krylov import WHICH, Eigenpairs
from landscape.curvature.second_derivatives import require_own_gradient
from landscape.model.bound_model import Flat
from landscape.model.loss_trial import require_sum
from landscape.model.losses import loss_blocks, loss_name, total_weight
from landscape.model.samples import Samples
from landscape.model.task import Split, Task
from landscape.model.vectors import takes_models
from landscape.results.labelled import labelled
from landscape.results.not_finite import NotFinite

CURVATURES = {"hessian": "Hessian", "gauss_newton": "Gauss-Newton"}
"""Matrices of which eigenvalues, trace and density are computed, with their names in labels.

Gauss-Newton omits the curvature of the model.
"""

RESIDUAL = "bound on ||Hv - value v||"
"""Label of residuals; an eigenvalue lies within one of its value."""

SPOKEN = {"magnitude": "largest", "largest": "largest signed", "smallest": "smallest", "both": "extreme"}
"""Words for a choice of eigenvalues in labels."""


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
    which: str = "magnitude",
    backend: str = "native",
    curvature: str = "hessian",
    tolerance: float = 1e-3,
    max_products: int = 500,
    seed: int = 0,
    buffers: Tensor | None = None,
    vectors: bool = False,
    block: int = 256,
) -> xr.Dataset:
    """Extreme Hessian eigenvalues of the mean loss over a split, in eval mode; smaller means flatter.

        ds = landscape.hessian(task, model, k=3)
        ds.eigenvalue.values, ds.residual.values

    After the search, a product with a mixture of all vectors confirms bounds on ||H v - value v||; small values are
    measured one by one, in float64 for models that can be computed so. An eigenvalue lies within that distance. A value
    that did not converge is NaN.

    Source: FedLAW Fig. 10 (top 1 and top 5); the LSS paper's Table 7 takes the median of the first one over batches,
    which is this function on single batches.

    Args:
        task: Model, loss and samples.
        split: Samples that the numbers are averaged over.
        seed: Seed of the random draws.
        theta: Model, shape (d,); its dtype and device are used.
        k: Number of eigenvalues.
        which: "magnitude", the largest in magnitude with their sign, by falling magnitude; "largest", falling;
            "smallest", rising, so the most negative first; "both" ends, falling, one more of the largest if k is odd.
        backend: "native" (Lanczos), "curvlinops" (its products in ARPACK) or "pyhessian" (power iteration with
            deflation, float32, Hessian and magnitude only).
        curvature: "hessian" or "gauss_newton".
        tolerance: Bound on the residual, relative to |value|, 1e-3 as in PyHessian; its square is the relative error
            expected of a value. Near 0, a residual up to 3 % of the value is accepted where it is within rounding (100
            units in the last place of the largest magnitude) or, for other choices than "magnitude", within the
            tolerance of a tenth of that. A value is 0, and its residual is that bound, where ||H v|| is within the
            bound; it is NaN between the two. A model in float64 has more digits.
        max_products: Hessian-vector products of the search at most, without those that measure values; 500 is the
            papers' 100 iterations for each of five values.
        buffers: Floating buffers (b,) of the model; by default the model's own.
        vectors: Also return eigenvectors.
        block: Samples in one gradient graph.

    Returns:
        Dataset with eigenvalue, residual and converged (rank,), ranks 1..k, and on request unit eigenvector
        (rank, parameter), whose entry of largest magnitude is positive. Eigenvalue and eigenvector are NaN where
        converged is False. Attribute: products spent.

    Raises:
        ValueError: If the back end or `which` is unknown, k is not in 1..d (2..d for both ends), the split is empty, or
            the loss is not finite.
        LookupError: If the back end's package is not installed.
    """
    solver = plugins.load("landscape.spectra", backend, "Hessian back end")
    plugins.require_known("choice of eigenvalues", which, WHICH)
    least = 2 if which == "both" else 1
    if not least <= k <= theta.numel():
        raise ValueError(
            f"k is {k}, the model has {theta.numel()} parameters; ask for {least} to {theta.numel()} eigenvalues."
        )
    posed = replace(pose(task, theta, split=split, buffers=buffers, block=block, curvature=curvature), vectors=vectors)
    pairs = solver.eigenpairs(posed, k, which=which, tolerance=tolerance, max_products=max_products, seed=seed)
    about = {"analysis": "top_eigenvalues", "source": "FedLAW Fig. 10", "backend": backend, "which": which}
    return _dataset(pairs, vectors).assign_attrs({**about, "curvature": curvature, "products": pairs.products})


hessian = top_eigenvalues  # the short name; its page has the whole docstring


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
        ValueError: If the curvature is unknown, the split is empty, or the gradient is not the loss's own.
    """
    plugins.require_known("curvature", curvature, CURVATURES)
    theta, samples = theta.detach(), task.split(split)
    flat = task.flat(theta)
    flat.load(theta, buffers)
    if len(samples) == 0:
        raise ValueError("the split has no samples; the Hessian of an empty mean is not defined.")
    require_own_gradient(flat, samples)
    return CurvatureProblem(flat, theta, samples, block, curvature)


@torch.no_grad()
def check_loss(flat: Flat, samples: Samples, *, block: int = 256) -> None:
    """Require finite losses of all samples at the theta of `flat`, of which the loss of a block is the mean.

    Raises:
        ValueError: If a loss is not finite, which names the sample; or the loss is not a mean there, or none counts.
    """
    if total_weight(flat.loss, samples.targets) == 0:
        none = f"none of {len(samples)} samples counts in the loss {loss_name(flat.loss)}: their labels are ignored, or"
        raise ValueError(f"{none} have weight 0, so it has no mean; give other samples, or more of them in a batch.")
    start = 0
    for batch in loss_blocks(flat.loss, samples, block)[0]:
        outputs, targets = flat.outputs(batch.inputs), batch.targets.to(flat.theta.device)
        losses = flat.loss(outputs, targets)
        require_sum(flat.loss, outputs, targets)
        if not losses.isfinite().all():
            bad = start + int((~losses.isfinite()).nonzero()[0, 0])
            raise NotFinite(
                f"the loss of sample {bad} is {losses[bad - start].item()}; the model must be finite there."
            )
        start += len(batch)


def _dataset(pairs: Eigenpairs, vectors: bool) -> xr.Dataset:
    variables: dict[str, tuple] = {
        "eigenvalue": ("rank", pairs.values.numpy(), "Hessian eigenvalue"),
        "residual": ("rank", pairs.residuals.numpy(), RESIDUAL),
        "converged": ("rank", pairs.converged.numpy(), "residual within the tolerance"),
    }
    if vectors:
        variables["eigenvector"] = (("rank", "parameter"), pairs.vectors.cpu().numpy(), "Hessian eigenvector")
    return labelled(variables, coords={"rank": np.arange(1, len(pairs.values) + 1)})
