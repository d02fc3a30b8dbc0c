"""Similarity of the outputs of models on the same inputs: centred kernel alignment (CKA)."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from landscape.plugins import require_known
from landscape.results.not_finite import NotFinite


def cka(x: Tensor, y: Tensor, *, kernel: str = "linear") -> float:
    """CKA of two models' outputs: 1 for outputs equal up to rotation, shift and scale, 0 for unrelated ones.

    linear: ||Y^T X||_F^2 / (||X^T X||_F ||Y^T Y||_F), columns centred. rbf: the same ratio of inner products of the
    centred kernel matrices exp(-||a - b||^2 / (2 s^2)), s^2 the median of the nonzero squared distances of each set.

    Source: Kornblith et al. 2019; used in the IMA paper, Fig. 4.

    Args:
        x, y: Outputs on the same N inputs, shapes (N, C) and (N, C').
        kernel: "linear", or "rbf", which needs N^2 numbers of memory.

    Returns:
        A fraction 0-1; NaN if one of the models has the same output for all inputs.

    Raises:
        ValueError: If the kernel is unknown, the numbers of inputs differ, or an output is not finite.
    """
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} inputs, y has {len(y)}; CKA compares outputs on the same inputs.")
    matrix, alignment = _kernel(kernel)
    return alignment(matrix(_checked(x)), matrix(_checked(y)))


def pairwise_cka(outputs: Tensor, *, kernel: str = "linear") -> Tensor:
    """CKA of every two of m models' outputs (m, N, C), as a symmetric matrix (m, m) in float64 on the CPU.

    The diagonal is 1, or NaN for a model with the same output for all inputs.
    """
    matrix, alignment = _kernel(kernel)
    prepared = [matrix(_checked(model_outputs)) for model_outputs in outputs]
    result = torch.full((len(outputs), len(outputs)), torch.nan, dtype=torch.float64)
    for i, model_outputs in enumerate(prepared):
        result[i, i] = torch.nan if model_outputs is None else 1.0
    for i, j in combinations(range(len(outputs)), 2):
        result[i, j] = result[j, i] = alignment(prepared[i], prepared[j])
    return result


def mean_cka(outputs: Tensor, *, kernel: str = "linear") -> float:
    """Mean CKA over the pairs of m models' outputs (m, N, C).

    Pairs whose CKA is not defined are left out; NaN where none is left.
    """
    matrix = pairwise_cka(outputs, kernel=kernel)
    rows, columns = torch.triu_indices(len(matrix), len(matrix), offset=1)
    return matrix[rows, columns].nanmean().item()


def _checked(outputs: Tensor) -> Tensor:
    """Outputs in float64, shape (N, o); zero where they differ by the rounding of their type alone."""
    if not outputs.isfinite().all():
        raise NotFinite("an output is not finite; leave this model out.")
    rounding = torch.finfo(outputs.dtype).eps if outputs.is_floating_point() else 0.0
    outputs = outputs.detach().double().flatten(1)
    varies = (outputs - outputs.mean(0)).norm() > ROUNDINGS * rounding * outputs.norm()
    return outputs if varies else torch.zeros_like(outputs)


ROUNDINGS = 16
"""Relative deviation of outputs from their mean, in roundings of their type, below which nothing varies."""

Prepared = Callable[[Tensor], Tensor | None]
Alignment = Callable[[Tensor | None, Tensor | None], float]


def _kernel(name: str) -> tuple[Prepared, Alignment]:
    kernels: dict[str, tuple[Prepared, Alignment]] = {"linear": (_features, _linear), "rbf": (_rbf_matrix, _inner)}
    require_known("kernel", name, kernels)
    return kernels[name]


def _features(outputs: Tensor) -> Tensor | None:
    """Centred columns X, scaled to ||X^T X||_F = 1; None if nothing varies."""
    centred = outputs - outputs.mean(0)
    if centred.norm() == 0:
        return None
    centred = centred / centred.norm()
    return centred / (centred.T @ centred).norm().sqrt()


def _linear(x: Tensor | None, y: Tensor | None) -> float:
    return torch.nan if x is None or y is None else (y.T @ x).square().sum().item()


def _rbf_matrix(outputs: Tensor) -> Tensor | None:
    """Doubly centred kernel matrix (N, N) of Frobenius norm 1; None if nothing varies."""
    if _features(outputs) is None:
        return None
    squares = torch.cdist(outputs, outputs, compute_mode="donot_use_mm_for_euclid_dist").square()
    middle = float(np.median(squares[squares > 0].cpu().numpy()))
    matrix = torch.exp(-squares / (2 * middle))
    centred = matrix - matrix.mean(0) - matrix.mean(1, keepdim=True) + matrix.mean()
    return centred / centred.norm()


def _inner(x: Tensor | None, y: Tensor | None) -> float:
    return torch.nan if x is None or y is None else (x * y).sum().item()
