"""Parts of a model that methods treat differently: head, normalisation layers, features."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from drift.training.correction import Correction
from landscape.model.adapters import factor_names
from landscape.model.binary_losses import binary_cross_entropy
from landscape.model.bound_model import Flat, outputs_with
from landscape.model.families import NORMS
from landscape.model.layout import Layout
from landscape.model.products import adapted_layers, residual_name
from landscape.model.samples import Inputs
from landscape.model.task import Task

Result = TypeVar("Result")

NORMALISED = (
    *("alexnet_gn", "cnn_digit5", "densenet121", "resnet8", "resnet18", "resnet18_gn", "resnet20", "resnet50"),
    *("resnet56", "resnet110", "vgg11_gn", "wrn56_4"),
)
"""Shipped models with normalisation layers."""

_NORMALISATION: tuple[type[nn.Module], ...] = (*NORMS, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)


def head_mask(module: nn.Module, layout: Layout, method: str) -> Tensor:
    """Which entries of theta (d,) belong to the classifier's head, bool.

    Raises:
        ValueError: If the model has no `head` and `body`.
    """
    require_head(module, method)
    return _mask(layout, lambda name: name.startswith("head."))


def require_head(module: nn.Module, method: str) -> nn.Module:
    """The head of a model: its last layer, whose inputs are the features.

    Raises:
        ValueError: If the model has no `head` and `body`.
    """
    head, body = getattr(module, "head", None), getattr(module, "body", None)
    if not isinstance(head, nn.Module) or not isinstance(body, nn.Module):
        raise ValueError(
            f"{method} needs a model with a `body` (features) and a `head` (last layer), "
            f"{type(module).__name__} has none; every model of `fedscape list models` has both."
        )
    return head


def require_headed(task: Task, method: str) -> None:
    """Raise ValueError for a task whose model has no `head` and `body`."""
    require_head(task.model, method)


def require_normalised(task: Task, method: str) -> None:
    """Raise ValueError for a task whose model has no normalisation layers."""
    norm_mask(task.model, task.layout, method)


def norm_mask(module: nn.Module, layout: Layout, method: str) -> Tensor:
    """Which entries of theta (d,) belong to normalisation layers (by their type, not their name), bool.

    Raises:
        ValueError: If the model has none.
    """
    names = {
        f"{outer}.{inner}" if outer else inner
        for outer, layer in module.named_modules()
        if isinstance(layer, _NORMALISATION)
        for inner, _ in layer.named_parameters(recurse=False)
    }
    if not names:
        raise ValueError(
            f"{method} needs a model with normalisation layers and this one ({type(module).__name__}) has none; "
            f"shipped models that do: {', '.join(NORMALISED)}."
        )
    return _mask(layout, names.__contains__)


def require_classes(task: Task, method: str) -> None:
    """Raise ValueError for a task with one output for two classes."""
    if task.loss is binary_cross_entropy:
        raise ValueError(
            f"{method} needs one output per class, and this task has one output for two classes; choose a method that "
            "does without, such as fedavg or server_ft, or a dataset with one output per class."
        )


def require_adapters(task: Task, method: str) -> None:
    """Raise ValueError for a task whose model trains no low-rank factors."""
    if not factor_names(task.layout.slices()):
        raise ValueError(
            f"{method} needs a model with low-rank adapters, {type(task.model).__name__} trains none; set "
            "task.model_options.lora=4 for the model hf."
        )


def residual_buffers(task: Task, method: str) -> dict[str, str]:
    """Names of the buffers that are added to frozen weights, by the name of the adapted layer.

    Raises:
        ValueError: If an adapted layer has none.
    """
    names = {layer: residual_name(layer, module) for layer, module in adapted_layers(task.model)}
    if None in names.values() or not names:
        raise ValueError(
            f"{method} changes frozen weights, which needs a buffer in each adapted layer; set "
            "task.model_options.residual=true, or call landscape.model.products.with_residuals in your model."
        )
    return {layer: str(name) for layer, name in names.items()}


def freeze(mask: Tensor, weight_decay: float) -> Correction:
    """A correction that keeps the entries of `mask` (d,) unchanged, also under weight decay."""
    return Correction(hold=mask, decay=weight_decay)


def features(flat: Flat, compute: Callable[[], Result]) -> tuple[Result, Tensor]:
    """What `compute` returns, and the features (n, q): what the head received while it ran."""
    received_by_head: list[Tensor] = []
    head: nn.Module = flat.module.head  # type: ignore[assignment]  # `require_head` has looked
    handle = head.register_forward_pre_hook(lambda module, received: received_by_head.append(received[0]))
    try:
        result = compute()
    finally:
        handle.remove()
    return result, received_by_head[-1]


@torch.no_grad()
def features_at(flat: Flat, theta: Tensor, buffers: Tensor, inputs: Inputs) -> Tensor:
    """Features (n, q) of another model of the same architecture, in eval mode; the one in `flat` stays."""
    training = flat.module.training
    flat.training(False)
    state = {**flat.layout.named(theta), **flat.layout.named_buffers(buffers)}
    _, activations = features(flat, lambda: outputs_with(flat.module, state, flat.cast(inputs)))
    flat.training(training)
    return activations


def _mask(layout: Layout, selects: Callable[[str], bool]) -> Tensor:
    return torch.cat([torch.full((span.stop - span.start,), selects(name)) for name, span in layout.slices().items()])
