"""The loss that a model of transformers returns itself, as a function of its logits and labels."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from landscape.model.data_formats import SPAN
from landscape.model.samples import Samples, call_module

Loss = Callable[[Tensor, Tensor], Tensor]


def logits_of(outputs: Any) -> Tensor | None:
    """Logits of a model of transformers, those of the ends of an answer as (n, T, 2); None of another model."""
    if isinstance(start := getattr(outputs, "start_logits", None), Tensor):
        return torch.stack((start, outputs.end_logits), -1)
    return logits if isinstance(logits := getattr(outputs, "logits", None), Tensor) else None


@torch.no_grad()
def model_loss(module: nn.Module, few: Samples, outputs: Any, logits: Tensor) -> Loss:
    """The loss of (logits, labels) that equals what the module returns as `loss` when it is called with `labels`.

    Args:
        module: A copy; a part whose class names no loss gets the name of the one that transformers takes, and warns of.
        few: Inputs and labels on the device of the module; of questions the positions of the answers, (n, 2).
        outputs, logits: What the module returns for them, and `logits_of` it.

    Raises:
        ValueError: If the module returns no loss, or none of the usual ones.
    """
    name, ends = type(module).__name__, hasattr(outputs, "start_logits")
    targets = dict(zip(SPAN, few.targets.T, strict=True)) if ends else {"labels": few.targets.contiguous()}
    for layer in module.modules():
        if getattr(layer, "loss_type", "") is None:
            layer.loss_type = "ForCausalLM"  # type: ignore[assignment]
    reported: Any = getattr(call_module(partial(module, **targets), few.inputs), "loss", None)
    if not isinstance(reported, Tensor) or reported.numel() != 1:
        raise ValueError(f"{name} returns no loss when it is called with labels; give a function (outputs, targets).")
    for loss in (span_loss,) if ends else _USUAL:
        try:
            value = loss(logits, few.targets)
        except (RuntimeError, ValueError, IndexError):  # for outputs or targets of another shape
            continue
        if torch.allclose(value.double(), reported.double().reshape(()), rtol=1e-5, atol=1e-6):
            return loss
    raise ValueError(
        f"the loss of {name} is not one of {', '.join(loss.__name__ for loss in _USUAL)}; give it as a function of "
        "(logits, labels)."
    )


def next_token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of logits (n, T, V) for the label of the next place; -100 does not count.

    Fewer labels are those of the last places: those before them are of a prompt that the model adds.
    """
    labels = F.pad(labels, (logits.shape[1] - labels.shape[1], 0), value=-100)
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


def span_loss(logits: Tensor, positions: Tensor) -> Tensor:
    """Mean of the cross-entropies of logits (n, T, 2) for first and last places (n, 2); T and more do not count."""
    length = logits.shape[1]
    return F.cross_entropy(logits[..., 0], positions[:, 0].clamp(0, length), ignore_index=length) / 2 + (
        F.cross_entropy(logits[..., 1], positions[:, 1].clamp(0, length), ignore_index=length) / 2
    )


_USUAL = (next_token_loss, token_loss, class_loss, regression_loss, label_set_loss)
