"""Second derivatives of a model: functions that have right ones, and refusal of functions that have none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from landscape.model.bound_model import Flat


@contextmanager
def second_derivatives(flat: Flat) -> Iterator[None]:
    """Context for second derivatives of a model: the math attention kernel and weight norm by its formula.

    Fused attention kernels have no second derivative; that of torch's weight norm takes the norms for constants.

    Raises:
        ValueError: If one of the model's functions has no second derivative.
    """
    try:
        with sdpa_kernel(SDPBackend.MATH), _WeightNormByFormula():
            yield
    except RuntimeError as reason:
        first = str(reason).splitlines()[0]
        if not any(sign in first for sign in _ONCE):
            raise
        raise ValueError(_no_second_derivative(flat, first[:160])) from reason


class _WeightNormByFormula(TorchFunctionMode):
    """v g / |v| for weight norm, of parametrisations and of hooks; everything else as it is."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__name__", "") == "_weight_norm":
            v, g, dim = args
            return v * (g / torch.norm_except_dim(v, 2, dim))
        return func(*args, **(kwargs or {}))


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
