"""The loss that a model of transformers returns itself, as a function of its logits and labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from landscape.model.samples import Samples

Loss = Callable[[Tensor, Tensor], Tensor]


@torch.no_grad()
def model_loss(module: nn.Module, few: Samples, logits: Tensor) -> Loss:
    """The loss of (logits, labels) that equals what the module returns as `loss` when it is called with `labels`.

    Args:
        few: Inputs and labels on the device of the module.
        logits: The module's outputs on them.

    Raises:
        ValueError: If the module returns no loss, or none of the usual ones.
    """
    name = type(module).__name__
    if not isinstance(few.inputs, dict):
        raise ValueError(f"the loss is None and {name} takes no named inputs; give a function (outputs, targets).")
    own: Any = getattr(module(**few.inputs, labels=few.targets), "loss", None)
    if not isinstance(own, Tensor) or own.numel() != 1:
        raise ValueError(f"{name} returns no loss when it is called with labels; give a function (outputs, targets).")
    for loss in _USUAL:
        try:
            value = loss(logits, few.targets)
        except (RuntimeError, ValueError, IndexError):  # for outputs or targets of another shape
            continue
        if torch.allclose(value.double(), own.double().reshape(()), rtol=1e-5, atol=1e-6):
            return loss
    raise ValueError(
        f"the loss of {name} is none of {', '.join(loss.__name__ for loss in _USUAL)}; give it as a function of "
        "(logits, labels)."
    )


def next_token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of logits (n, T, V) for the label of the next place; -100 does not count."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


def token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of logits (n, T, V) for the label of the same place; -100 does not count."""
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)


def class_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of logits (n, C) for classes (n,)."""
    return F.cross_entropy(logits, labels)


def regression_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean squared error of outputs (n, 1) or (n, c)."""
    return (logits.reshape(labels.shape) - labels).square().mean()


def label_set_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean binary cross-entropy of logits (n, C) for labels 0 or 1, shape (n, C)."""
    return F.binary_cross_entropy_with_logits(logits, labels)


_USUAL = (next_token_loss, token_loss, class_loss, regression_loss, label_set_loss)
