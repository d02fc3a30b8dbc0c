"""Trace and Frobenius norm of the loss's curvature."""

from __future__ import annotations

import torch
import xarray as xr
from torch import Tensor

from landscape.curvature.curvature_products import product
from landscape.curvature.hessian import CURVATURES, pose
from landscape.curvature.lanczos import Product, dots
from landscape.model.task import Split, Task
from landscape.model.vectors import takes_models
from landscape.results.labelled import labelled


@takes_models("theta")
def trace(
    task: Task,
    theta: Tensor,
    *,
    split: Split = "train",
    curvature: str = "hessian",
    products: int = 99,
    seed: int = 0,
    buffers: Tensor | None = None,
    block: int = 256,
) -> xr.Dataset:
    """Trace of the Hessian of the mean loss: exactly where d products are allowed, else estimated by Hutch++.

        ds = landscape.trace(task, model)
        float(ds.trace), float(ds.standard_error)

    A third of the products find a basis Q of the largest eigenvectors, a third give tr(Q^T A Q), and the mean of
    g^T (I - Q Q^T) A (I - Q Q^T) g over the last third of random signs g estimates the rest.

    Source: Meyer et al. 2021, Hutch++, algorithm 1.

    Args:
        task: Model, loss and samples.
        split: Samples that the numbers are averaged over.
        seed: Seed of the random draws.
        theta: Model, shape (d,).
        curvature: "hessian" or "gauss_newton".
        products: Matrix-vector products at most; the estimate takes at least 6.
        buffers: Floating buffers (b,) of the model; by default the model's own.
        block: Samples in one pass.

    Returns:
        Dataset with trace () and frobenius (), the norm; standard_error () and frobenius_error () of the estimated
        parts (0 where exact).
        Attributes: products spent, exact (1 or 0).

    Raises:
        ValueError: If products is below 6 and below d, or as `landscape.curvature.hessian.pose`.
    """
    posed = pose(task, theta, split=split, buffers=buffers, block=block, curvature=curvature)
    size = posed.theta.numel()
    if products < min(6, size):
        raise ValueError(f"products is {products}; the trace takes at least {min(6, size)}.")
    matrix = product(posed)
    estimates = _exact(matrix, posed.theta) if size <= products else _hutchpp(matrix, posed.theta, products // 3, seed)
    names = {"trace": "trace", "standard_error": "standard error of the trace"}
    names |= {"frobenius": "norm", "frobenius_error": "standard error of the norm"}
    kind = CURVATURES[curvature]
    variables = {
        name: ((), value, f"{text} of the {kind}") for (name, text), value in zip(names.items(), estimates, strict=True)
    }
    exact = size <= products
    spent = size if exact else 3 * (products // 3)
    about = {"analysis": "trace", "source": "Meyer et al. 2021, Hutch++", "curvature": curvature}
    return labelled(variables, {**about, "products": spent, "exact": int(exact)})


def signs(rows: int, like: Tensor, seed: int) -> Tensor:
    """Random signs (rows, d), in the dtype and on the device of `like` (d,)."""
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randint(2, (rows, like.numel()), generator=generator) - 1).to(like)


def _exact(matrix: Product, like: Tensor) -> tuple[float, ...]:
    total, squares = 0.0, 0.0
    for index in range(like.numel()):
        unit = torch.zeros_like(like)
        unit[index] = 1
        column = matrix(unit)
        total += column[index].item()
        squares += column.double().square().sum().item()
    return total, 0.0, squares**0.5, 0.0


def _hutchpp(matrix: Product, like: Tensor, count: int, seed: int) -> tuple[float, ...]:
    random = signs(2 * count, like, seed)
    sketch = torch.stack([matrix(row) for row in random[:count]])
    squares = sketch.double().square().sum(1)  # E |A s|^2 = |A|^2 for random signs s
    length = squares.mean().item() ** 0.5
    length_error = squares.std().item() / count**0.5 / (2 * length) if length else 0.0
    basis = torch.linalg.qr(sketch.T).Q.T
    inside = sum(dots(row[None], matrix(row)).item() for row in basis)
    rest = random[count:] - (random[count:] @ basis.T) @ basis
    samples = torch.tensor([dots(row[None], matrix(row)).item() for row in rest], dtype=torch.float64)
    return inside + samples.mean().item(), samples.std().item() / count**0.5, length, length_error
