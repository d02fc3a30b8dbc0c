"""Second derivatives of a model: functions that have right ones, and refusal of those that have none or wrong ones."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.grad import conv2d_weight
from torch.overrides import TorchFunctionMode

from landscape.model.bound_model import Flat
from landscape.model.loss_trial import in_float64
from landscape.model.losses import is_coupled
from landscape.model.samples import Samples

PROBE = 8
"""Samples on which the gradient is compared with differences of the loss."""

STEPS = (1e-4, 1e-6)
"""Lengths of these differences; the shorter one meets no kink, the longer one has less rounding."""

CLEAR = 0.01
"""Disagreement, relative to the gradient, from which on its backward pass is refused."""


@contextmanager
def second_derivatives(flat: Flat) -> Iterator[None]:
    """Context for second derivatives of a model: attention and weight norm by their formulas, faster convolutions.

    Fused attention kernels have no second derivative; that of torch's weight norm takes the norms for constants.

    Raises:
        ValueError: If one of the model's functions has no second derivative.
    """
    try:
        with sdpa_kernel(SDPBackend.MATH), _ByFormula():
            yield
    except RuntimeError as reason:
        first = str(reason).splitlines()[0]
        if not any(sign in first for sign in _ONCE):
            raise
        raise ValueError(_no_second_derivative(flat, first[:160])) from reason


class _ByFormula(TorchFunctionMode):
    """v g / |v| for weight norm, of parametrisations and of hooks; convolutions of images that are constants."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__name__", "") == "_weight_norm":
            v, g, dim = args
            return v * (g / torch.norm_except_dim(v, 2, dim))
        if func is torch.conv2d and len(args) == 7 and args[0].ndim == 4 and not args[0].requires_grad:
            images, weight, bias, *options = args
            if not isinstance(options[1], str):  # the padding
                outputs = _OfData.apply(images, weight, weight.shape, options, False)
                return outputs if bias is None else outputs + bias.view(-1, 1, 1)
        return func(*args, **(kwargs or {}))


class _OfData(torch.autograd.Function):
    """A convolution of images that are constants, as a linear map of its weights; or the transposed map.

    Each is the derivative of the other. torch's derivatives of a convolution's derivative have a part by the images,
    which takes a third of a product of a small CNN.
    """

    @staticmethod
    def forward(ctx: Any, images: Tensor, entry: Tensor, shape: torch.Size, options: Any, back: bool) -> Tensor:
        """Outputs of the weights `entry`; or weights of this shape of the outputs `entry`."""
        ctx.rest = shape, options, not back
        ctx.save_for_backward(images)
        return conv2d_weight(images, shape, entry, *options) if back else torch.conv2d(images, entry, None, *options)

    @staticmethod
    def backward(ctx: Any, along: Tensor) -> Any:
        """The transposed map."""
        return None, _OfData.apply(*ctx.saved_tensors, along, *ctx.rest), None, None, None


def require_second_derivatives(flat: Flat, gradients: Sequence[Tensor]) -> None:
    """Refuse gradients through a function marked `once_differentiable`: torch takes their derivatives to be zero.

    Raises:
        ValueError: If there is such a function in the graph of the gradients.
    """
    waiting = [slope.grad_fn for slope in gradients if slope.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if type(node).__name__ == "Error":  # set by `once_differentiable`
            raise ValueError(_no_second_derivative(flat, "a custom function is marked with @once_differentiable"))
        fresh = {after for after, _ in node.next_functions if after is not None} - seen
        seen |= fresh
        waiting.extend(fresh)


def require_own_gradient(flat: Flat, samples: Samples) -> None:
    """Refuse a gradient that is clearly not that of the loss, as behind straight-through estimators.

    In float64, its length is the slope of the loss along it. A small random step away from theta, no sample lies on a
    kink. Models that are not computed in float64 are not compared.

    Raises:
        ValueError: If central differences give other slopes, with both.
    """
    rows = torch.linspace(0, len(samples) - 1, min(PROBE, len(samples))).round().long().unique()
    few = samples if is_coupled(flat.loss) else samples[rows]

    def loss_at(theta: Tensor) -> Tensor:
        copy.load(theta, flat.buffers)
        return copy.gradient(few)

    try:
        copy = flat.anew(torch.float64)
        copy.loss = in_float64(flat.loss)
        noise = torch.randn(flat.theta.shape, generator=torch.Generator().manual_seed(0)).to(copy.theta)
        at = flat.theta.double() + 1e-3 * noise * flat.theta.double().square().mean().sqrt().clamp_min(1e-6)
        loss, slope, gradient = loss_at(at), copy.grad.norm(), copy.grad.clone()
        along, point = gradient / slope, at.clone().requires_grad_()
        seen = torch.autograd.grad(copy.functional_loss(point, few), point, materialize_grads=True)[0]
        slopes = [(loss_at(at + step * along) - loss_at(at - step * along)) / (2 * step) for step in STEPS if slope > 0]
    except (RuntimeError, TypeError):  # a dtype that is written into the model
        return
    if (seen - gradient).norm() > CLEAR * slope:
        raise ValueError(
            f"{type(flat.module).__name__} reads parameters where they cannot be replaced, as in a list or dict, so it "
            "has no Hessian by torch; read them as attributes of modules (nn.ParameterList, nn.ParameterDict)."
        )
    limits = [CLEAR * slope + 1e-12 * (1 + loss.abs()) / step for step in STEPS]  # and rounding
    if slopes and all((step_slope - slope).abs() > limit for step_slope, limit in zip(slopes, limits, strict=True)):
        raise ValueError(
            f"the gradient of {type(flat.module).__name__} is not the derivative of its loss: along it the loss rises "
            f"by {slopes[1]:.3g} per unit, its length says {slope:.3g}. The backward pass of a function is not its own "
            "(straight-through estimators, detached factors), so there is no Hessian; give a model and a loss with the "
            "function whose derivative is taken in its place."
        )


def _no_second_derivative(flat: Flat, reason: str) -> str:
    return (
        f"{type(flat.module).__name__} has no second derivative, which curvature needs ({reason}); write the function "
        "that lacks it, and its backward pass, with torch operations that can be differentiated."
    )


_ONCE = (
    "differentiate twice",
    "derivative for",
    "derivative of",
    "incompatible with .grad()",
    "use_reentrant",
    "does not require grad",
)
"""Parts of the messages of torch about functions without second derivative."""
