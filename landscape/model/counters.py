"""Counters of a model, such as the steps of its training: they are in no vector, so outputs may not depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from landscape.model.copies import copy_module
from landscape.model.fitted_names import equal_values
from landscape.model.input_format import alike
from landscape.model.samples import call_module

if TYPE_CHECKING:
    from landscape.model.task import Task


@torch.no_grad()
def require_same_counters(name: str, state: Mapping[str, Tensor], task: Task) -> None:
    """Refuse a model with another counter than the task's model, if its outputs on two samples depend on it.

    Raises:
        ValueError: Calls the model `name`, and names the counters.
    """
    others = {
        key: buffer
        for key, buffer in task.model.named_buffers()
        if buffer.ndim == 0 and not buffer.is_floating_point() and not equal_values(state.get(key, buffer), buffer)
    }
    few = next((samples[:2] for samples in task.samples.values() if len(samples)), None)
    if few is None or all(key.endswith("num_batches_tracked") for key in others):
        return
    module = copy_module(task.model).eval()
    inputs, outputs = few.to(dtype=task.theta.dtype, device=task.theta.device).inputs, list[Tensor]()
    for values in (state, {**state, **others}):
        module.load_state_dict(values, strict=False)
        outputs.append(call_module(module, inputs))
    if not alike(outputs[0], outputs[1]):
        raise ValueError(
            f"{name}: its outputs depend on {', '.join(others)}, which has another value in the task's model and is no "
            "parameter; set it there before make_task."
        )
