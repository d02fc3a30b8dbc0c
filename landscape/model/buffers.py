"""Floating buffers of the models that a function takes: collected, required where a model has any, and checked."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from landscape.model.layout import Layout
from landscape.model.model import Model

VARIANCE = "running_var"
"""Last word of the names of running variances."""


def model_buffers(values: Sequence[Any], layout: Layout | None) -> Tensor | None:
    """Floating buffers (b,) of one model, (n, b) of several; None if there are none, or none of the models has any.

    Args:
        values: Models, matrices of models, or sequences of models.
        layout: Of the task, if there is one.

    Raises:
        ValueError: If some models have buffers and some are plain vectors, or a running variance is negative.
    """
    models = [model for value in values for model in (value if isinstance(value, list | tuple) else [value])]
    rows_or_none = [_model_buffers(model, layout) for model in models]
    rows = [row for row in rows_or_none if row is not None]
    if not rows or (layout is not None and not layout.buffers):
        return None
    if len(rows) < len(rows_or_none):
        raise ValueError(
            "some models are vectors without the floating buffers of the model (such as BatchNorm statistics) and some "
            "have them; give all with theirs (of a round as they are, modules, state dicts), or all as vectors with "
            "buffers."
        )
    if layout is not None:
        for row in rows:
            check_variances(row, layout)
    if len(values) == 1 and not isinstance(values[0], list | tuple):
        return rows[0]
    return torch.cat([row.reshape(-1, row.shape[-1]).to(rows[0]) for row in rows])


def require_buffers(buffers: Tensor | None, layout: Layout, what: str) -> None:
    """Refuse models that lack the floating buffers of the task's model.

    Raises:
        ValueError: If `buffers` is None and the layout has some; `what` says which models.
    """
    if buffers is None and layout.buffers:
        names = ", ".join(name for name, _ in layout.buffers[:2])
        raise ValueError(
            f"{what} without the floating buffers of the model ({names}{', ..' if len(layout.buffers) > 2 else ''}), "
            "and the untrained ones are not its own; give the model with its buffers (run.round(-1).end as it is, "
            "landscape.Model(theta, buffers), a module, a state dict, a checkpoint), or buffers= beside vectors."
        )


def check_variances(buffers: Tensor, layout: Layout) -> None:
    """Refuse running variances below 0, with which a model computes no numbers.

    Raises:
        ValueError: Names the layer.
    """
    if layer := negative_variance(buffers, layout):
        raise ValueError(
            f"{VARIANCE} of layer {layer} is negative in this model (a server optimiser moved it, for example), so it "
            "has no loss; give its vector (`.theta`) with statistics='recomputed', or buffers= of your choice."
        )


def negative_variance(buffers: Tensor, layout: Layout) -> str:
    """Name of the first layer whose running variance is below 0 in buffers (b,) or (n, b); empty if there is none."""
    for row in buffers.reshape(-1, layout.buffer_size) if layout.buffer_size else ():
        for name, value in layout.named_buffers(row).items():
            layer, _, last = name.rpartition(".")
            if last == VARIANCE and bool((value < 0).any()):
                return layer or "itself"
    return ""


def _model_buffers(model: Any, layout: Layout | None) -> Tensor | None:
    """Buffers that come with a model, (b,) or (n, b); None of a plain vector."""
    if isinstance(model, Model):
        return model.buffers
    if layout is not None and isinstance(model, nn.Module | Mapping):
        return layout.buffer_vector(model)
    return None
