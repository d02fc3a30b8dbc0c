"""The Gauss-Newton matrix: the Hessian without the curvature of the model, never negative for convex losses."""

from collections.abc import Sequence

import torch
from torch import Tensor

from landscape.curvature.hessian_products import BlockGraph, Point, outputs_at, transposed
from landscape.curvature.second_derivatives import second_derivatives
from landscape.model.bound_model import Flat
from landscape.model.losses import batch_mean
from landscape.model.samples import Samples


def gauss_newton_graph(flat: Flat, point: Point, samples: Samples) -> BlockGraph:
    """The mean over samples of J^T A J, with J the Jacobian of the outputs and A the Hessian of the loss by them.

    For cross-entropy it is the Fisher matrix. J v is the derivative of u -> J^T u along v, transposed.

    Source: Schraudolph 2002, section 3.
    """
    leaves = list(point.values())
    with second_derivatives(flat):
        outputs = outputs_at(flat, point, samples)
        u = torch.zeros_like(outputs, requires_grad=True)
        pulled = torch.autograd.grad(outputs, leaves, u, create_graph=True, materialize_grads=True)
        values = outputs.detach().requires_grad_()
        loss = batch_mean(flat.loss, values, samples.targets.to(values.device))
        (slope,) = torch.autograd.grad(loss, values, create_graph=True)
        gradient = transposed([outputs], leaves, [slope.detach()])

    def image(along: Sequence[Tensor]) -> Sequence[Tensor]:
        (moved,) = transposed(pulled, [u], along)
        return transposed([outputs], leaves, transposed([slope], [values], [moved]))

    return BlockGraph(pulled, gradient, image)
