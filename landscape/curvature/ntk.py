"""The neural tangent kernel of a model on a few samples, and the variance that it predicts at other points."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.func import grad, vmap

from landscape.model.bound_model import Flat, outputs_with
from landscape.model.samples import Inputs, Samples, map_leaves
from landscape.model.task import Task
from landscape.model.vectors import takes_models

MEMORY = 2**29
"""Bytes of gradients in memory at a time."""


@takes_models("theta")
def ntk(task: Task, theta: Tensor, samples: Samples, *, buffers: Tensor | None = None, memory: int = MEMORY) -> Tensor:
    """Tangent kernel of every two samples, averaged over the outputs of the model, shape (n, n), float64, symmetric.

    K(x, x') = 1/C sum_c <grad f_c(x), grad f_c(x')> with f in eval mode: the mean of the kernels of the single
    outputs (logits); a kernel between different outputs has no part in it.

    Source: Jacot et al. 2018, Eq. 4; as in Zhou et al. 2024 (IMA), theorem 2.

    Args:
        task: Model, loss and samples.
        theta: Model, shape (d,); its dtype is that of the gradients.
        samples: n of them; C n gradients are computed, more if `memory` does not fit n.
        buffers: Floating buffers, shape (b,); by default the model's own.
        memory: Bytes of gradients in memory, at least those of two samples.

    Raises:
        ValueError: If there is no sample.
    """
    if len(samples) == 0:
        raise ValueError("there are no samples; a kernel needs at least one.")
    flat = task.flat(theta.detach())
    flat.load(theta.detach(), buffers)
    with torch.no_grad():
        classes = flat.outputs(samples[:1].inputs).numel()
    size = max(1, memory // (2 * theta.numel() * theta.element_size()))
    blocks = [flat.cast(block.inputs) for block in samples.blocks(size)]
    spans = [slice(low, min(low + size, len(samples))) for low in range(0, len(samples), size)]
    kernel = torch.zeros(len(samples), len(samples), dtype=torch.float64)
    for output in range(classes):
        for row, where in enumerate(spans):
            mine = _gradients(flat, blocks[row], output)
            kernel[where, where] += _products(mine, mine)
            for column in range(row):
                other = _products(mine, _gradients(flat, blocks[column], output))
                kernel[where, spans[column]] += other
                kernel[spans[column], where] += other.T
    return kernel / classes


def variance_by_mmd(train: Tensor, cross: Tensor, data: Tensor) -> dict[str, float]:
    """Both sides of the expression of a trained model's variance by its data's distance (MMD) to all data.

    For training points i = 1..n of a set A and evaluation points x of a set D, with lambda = mean K(x_i, x_i):
    variance = mean over D of K(x, x) - K(x, A) K(A, A)^-1 K(A, x), the posterior variance of a Gaussian process;
    mmd2 = mean_{i != j in A} K^2 + mean_{x != x' in D} K^2 - 2 mean_{i, x} K^2, the squared MMD of the kernel K^2;
    expression = n/(2 lambda) mmd2 + mean K(x, x) - n/(2 lambda) mean_{x != x'} K^2.
    They agree where K(A, A) is lambda times the identity. off_diagonal, the largest |K(x_i, x_j)| over lambda, and
    diagonal_spread, the standard deviation of K(x_i, x_i) over lambda, measure the distance from that.

    Source: Zhou et al. 2024 (IMA), theorem 2, with K^2 for the kernel, which the derivation needs (papers.md 3.2.3).

    Args:
        train: Kernel of the training points, shape (n, n).
        cross: Kernel of training and evaluation points, shape (n, N).
        data: Kernel of the evaluation points, shape (N, N).

    Returns:
        The quantities above by name, and diagonal (lambda), data_diagonal, data_square (the mean of K^2 in D). mmd2,
        expression and off_diagonal are NaN for one training or evaluation point.
    """
    train, cross, data = train.double(), cross.double(), data.double()
    diagonal, level = train.diagonal(), float(train.diagonal().mean())
    data_diagonal, data_square = float(data.diagonal().mean()), _pairs(data.square())
    mmd2 = _pairs(train.square()) + data_square - 2 * float(cross.square().mean())
    rounding = len(train) * torch.finfo(torch.float32).eps  # directions that it could have made are left out
    explained = (cross * (torch.linalg.pinv(train, hermitian=True, rtol=rounding) @ cross)).sum(0)
    off = train - torch.diag(diagonal)
    half = len(train) / (2 * level) if level > 0 else float("nan")
    return {
        "variance": float((data.diagonal() - explained).mean()),
        "expression": half * mmd2 + data_diagonal - half * data_square,
        "mmd2": mmd2,
        "diagonal": level,
        "diagonal_spread": float(diagonal.std(correction=0)) / level if level > 0 else float("nan"),
        "off_diagonal": float(off.abs().max()) / level if level > 0 and len(train) > 1 else float("nan"),
        "data_diagonal": data_diagonal,
        "data_square": data_square,
    }


def _gradients(flat: Flat, inputs: Inputs, output: int) -> list[Tensor]:
    """Gradients of one output at every sample, a block (n, size) for each parameter."""
    parameters = {name: view.detach() for name, view in flat.layout.named(flat.theta).items()}

    def value(state: dict[str, Tensor], sample: Inputs) -> Tensor:
        return outputs_with(flat.module, state, map_leaves(lambda leaf: leaf[None], sample)).flatten()[output]

    # `cast` copies where the model changes its inputs
    gradients = vmap(grad(value), in_dims=(None, 0))(parameters, flat.cast(inputs))
    return [gradient.flatten(1) for gradient in gradients.values()]


def _products(mine: list[Tensor], other: list[Tensor]) -> Tensor:
    return sum((a @ b.T for a, b in zip(mine, other, strict=True)), torch.zeros(())).double().cpu()


def _pairs(matrix: Tensor) -> float:
    """Mean off the diagonal."""
    count = len(matrix)
    return float(matrix.sum() - matrix.diagonal().sum()) / (count * (count - 1)) if count > 1 else float("nan")
