"""What a user's loss fails on, in words, and what to do about it."""

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor

from landscape.model.losses import loss_name

FAILS = (RuntimeError, ValueError, IndexError, TypeError, AttributeError)
"""Errors of a user's function on what it does not take."""


def require_no_failure(loss: Callable[[Any, Tensor], Any], batches: Iterable[tuple[Tensor, Tensor]]) -> None:
    """Refuse a loss that fails on one of the samples.

    Raises:
        ValueError: With the target of the first such sample.
    """
    for batch in batches:
        for outputs, targets in (batch, *zip(*(tensor.split(1) for tensor in batch), strict=True)):
            try:
                loss(outputs, targets)
            except FAILS as reason:
                if len(targets) == 1:
                    what = f"fails on a sample with the target {targets.flatten()[:8].tolist()}: {first_line(reason)}"
                    raise ValueError(f"the loss {loss_name(loss)} {what}") from reason
            else:
                if len(targets) > 1:  # the whole batch
                    break


def first_line(reason: Exception) -> str:
    """The first line of an error's message, else its type."""
    return str(reason).splitlines()[0] if str(reason) else type(reason).__name__


def advice(outputs: Tensor, targets: Tensor, reason: Exception) -> str:
    """How to compare classes of every place of a sequence, and what the outputs of a model of transformers are."""
    if isinstance(reason, AttributeError) and "'logits'" in str(reason):
        return ". The loss gets the logits of the model themselves; write outputs in place of outputs.logits"
    if outputs.ndim == targets.ndim + 1 and outputs.ndim > 2 and outputs.shape[1:-1] == targets.shape[1:]:
        return (
            ". The classes lie in the last dimension of the outputs; torch takes them in the second: "
            "lambda outputs, targets: F.cross_entropy(outputs.flatten(0, -2), targets.flatten())"
        )
    if "Long" in str(reason) and outputs.is_floating_point() and not targets.is_floating_point():
        return ". The targets are whole numbers; give targets.float()"
    if "Long" in str(reason) and targets.is_floating_point():
        return ". The targets are floating numbers; give classes as targets.long()"
    return ""
