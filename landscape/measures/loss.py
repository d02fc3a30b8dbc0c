"""The numbers that people compare with their own: loss and metrics of one model on a split."""

from __future__ import annotations

from torch import Tensor

from landscape.model.task import Split, Task
from landscape.model.vectors import takes_models
from landscape.sweep.evaluate import model_metrics


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
