"""Gauss-Newton-vector products: the Hessian without the curvature of the model, never negative for convex losses."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from landscape.curvature.second_derivatives import require_second_derivatives, second_derivatives
from landscape.model.bound_model import Flat
from landscape.model.losses import batch_mean, loss_blocks
from landscape.model.samples import Samples


def gnvp(flat: Flat, theta: Tensor, samples: Samples, *, block: int = 256) -> Callable[[Tensor], Tensor]:
    """The Gauss-Newton matrix of the mean loss at theta, as a function v (d,) -> G v (d,).

    G is the mean over samples of J^T A J, with J the Jacobian of the outputs and A the Hessian of the loss by them; for
    cross-entropy it is the Fisher matrix.

    Source: Schraudolph 2002, section 3.

    Raises:
        ValueError: If there are no samples.
    """
    if len(samples) == 0:
        raise ValueError("the split has no samples; the Gauss-Newton matrix of an empty mean is not defined.")
    point = theta.detach()
    blocks, shares = loss_blocks(flat.loss, samples, block)

    def product(vector: Tensor) -> Tensor:
        total = torch.zeros_like(point)
        with second_derivatives(flat):
            for part, share in zip(blocks, shares, strict=True):
                total.add_(_image(flat, point, part, vector), alpha=share)
        return total

    return product


def _image(flat: Flat, theta: Tensor, samples: Samples, vector: Tensor) -> Tensor:
    """G v of one block; J v is the derivative of u -> J^T u along v, transposed."""
    point = theta.clone().requires_grad_()
    outputs = flat.functional(point, samples.inputs)
    u = torch.zeros_like(outputs, requires_grad=True)
    (pulled,) = torch.autograd.grad(outputs, point, u, create_graph=True)
    require_second_derivatives(flat, [pulled])
    (moved,) = torch.autograd.grad(pulled, u, vector, retain_graph=True)
    values = outputs.detach().requires_grad_()
    loss = batch_mean(flat.loss, values, samples.targets.to(point.device))
    (slope,) = torch.autograd.grad(loss, values, create_graph=True)
    curved = torch.autograd.grad(slope, values, moved)[0] if slope.requires_grad else torch.zeros_like(values)
    return torch.autograd.grad(outputs, point, curved)[0]
