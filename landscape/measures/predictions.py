"""What a classifier predicts for every sample: class, probability and loss; and the counts of a confusion matrix."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from landscape.model.losses import normalised
from landscape.model.task import Split, Task
from landscape.model.vectors import takes_models
from landscape.results.not_finite import NotFinite


@dataclass(frozen=True)
class Predictions:
    """Of one model on n samples.

    Args:
        predicted: Class with the largest probability, shape (n,), int64.
        confidence: Its probability, shape (n,).
        loss: Loss of the sample in the task's unit, shape (n,), float64; NaN of a model that diverged.
        probabilities: Of all C classes, shape (n, C).
    """

    predicted: np.ndarray
    confidence: np.ndarray
    loss: np.ndarray
    probabilities: np.ndarray


@takes_models("theta")
def predictions(task: Task, theta: Tensor, *, split: Split = "test", buffers: Tensor | None = None) -> Predictions:
    """Predictions of the model theta (d,) on every sample of a split.

    Outputs (n, C) are taken as logits, one output (n,) or (n, 1) as the logit of class 1.

    Args:
        task: Model, loss and samples.
        theta: Shape (d,).
        split: Name of a split, or samples.
        buffers: Floating buffers (b,); by default the model's own.

    Raises:
        ValueError: If the outputs are no logits of classes, or not finite, or the targets no classes.
    """
    samples = task.split(split)
    if samples.targets.ndim != 1 or samples.targets.is_floating_point():
        shape, kind = tuple(samples.targets.shape), samples.targets.dtype
        raise ValueError(f"targets have shape {shape} and type {kind}; predictions need one class number per sample.")
    outputs = task.outputs(theta, samples, buffers=buffers)
    probabilities = _probabilities(outputs, len(samples)).double().cpu().numpy()
    if not np.isfinite(probabilities).all():
        raise NotFinite("the model's outputs are not finite: it predicts no class. It diverged; give an earlier one.")
    losses = normalised(task.per_sample, outputs, samples.targets.to(outputs.device)).double().cpu().numpy()
    predicted = probabilities.argmax(1)
    return Predictions(predicted, probabilities[np.arange(len(predicted)), predicted], losses, probabilities)


def confusion_counts(targets: np.ndarray, predicted: np.ndarray, classes: int) -> np.ndarray:
    """Samples (C, C) by class (rows) and predicted class (columns).

    Args:
        targets, predicted: Class numbers, shape (n,).
        classes: Number C of classes.
    """
    return np.bincount(targets * classes + predicted, minlength=classes * classes).reshape(classes, classes)


def class_probabilities(outputs: Tensor, targets: Tensor) -> Tensor:
    """Probabilities (n, C) of classes, the softmax of logits (n, C).

    Raises:
        ValueError: If the outputs are no logits of two classes or more, or the targets no class numbers (n,).
    """
    if outputs.ndim != 2 or outputs.shape[1] < 2 or targets.ndim != 1 or targets.is_floating_point():
        raise ValueError(
            f"outputs have shape {tuple(outputs.shape)}, targets {tuple(targets.shape)} and type {targets.dtype}; "
            "probabilities need logits (n, C) of two classes or more, a class number per sample. Give outputs=logits."
        )
    return outputs.softmax(1)


def _probabilities(outputs: Tensor, count: int) -> Tensor:
    """Probabilities (n, C) from logits (n, C), or (n, 2) from one logit per sample."""
    if outputs.ndim == 2 and outputs.shape[1] > 1:
        return torch.softmax(outputs, 1)
    if outputs.numel() == count:
        second = torch.sigmoid(outputs.reshape(count))
        return torch.stack([1 - second, second], 1)
    raise ValueError(f"outputs have shape {tuple(outputs.shape)} for {count} samples; predictions need logits (n, C).")
