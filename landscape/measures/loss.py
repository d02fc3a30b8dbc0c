"""The numbers that people compare with their own: loss and metrics of one model on a split."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from landscape.model.task import Split, Task
from landscape.model.vectors import takes_models
from landscape.sweep.evaluate import evaluate


@takes_models("theta")
def loss(task: Task, theta: Tensor, *, split: Split = "test", buffers: Tensor | None = None) -> float:
    """Loss of a model on a split in eval mode, in the task's unit: the user's loss of the whole split as one batch.

        landscape.loss(task, net, split="train")

    Args:
        task: Model, loss and samples.
        theta: Model, shape (d,).
        split: Name of a split, or samples.
        buffers: Floating buffers (b,) of the model; by default the model's own.

    Raises:
        ValueError: If the split is empty or unknown.
    """
    return model_metrics(task, theta, buffers, split=split, metrics=("loss",))["loss"]


def model_metrics(
    task: Task, theta: Tensor, buffers: Tensor | None = None, *, split: Split = "test", **options: Any
) -> dict[str, float]:
    """Loss and metrics of one model (d,) on a split, by name, as `landscape.evaluate`.

    Args:
        buffers: Floating buffers (b,) of the model; by default the model's own.
    """
    rows = None if buffers is None or not len(buffers) else buffers[None]
    values = evaluate(task, theta[None], torch.ones(1, 1), buffers=rows, split=split, **options)
    return {name: float(value) for name, value in values.items()}
