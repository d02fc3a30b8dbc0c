"""One value per sample from a loss that returns the mean of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap

Loss = Callable[[Any, Tensor], Tensor]


@dataclass(frozen=True)
class PerSampleLoss:
    """Per-sample losses (n,): a loss that returns the mean of a batch, called on one sample at a time."""

    loss: Loss

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Loss of every sample (n,)."""
        try:
            return vmap(self._single)(outputs, targets)
        except RuntimeError:  # vmap does not support an operation of the loss
            singles = zip(outputs, targets, strict=True)
            return torch.stack([self._single(output, target) for output, target in singles])

    def _single(self, output: Tensor, target: Tensor) -> Tensor:
        return self.loss(output[None], target[None])


@torch.no_grad()
def per_sample(loss: Loss, outputs: Any, targets: Tensor) -> Loss:
    """The loss with one value per sample, checked on a few outputs and targets (n, ...), n >= 2.

    Raises:
        ValueError: If it is neither a value per sample nor the mean of such values.
    """
    values = loss(outputs, targets)
    shape: object = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
    if shape == (len(targets),):
        return loss
    if shape == () and isinstance(outputs, Tensor):
        singles = PerSampleLoss(loss)
        tolerance = 100 * torch.finfo(values.dtype).eps ** 0.75
        if torch.allclose(singles(outputs, targets).mean(), values, rtol=tolerance, atol=tolerance, equal_nan=True):
            return singles
        shape = "one number, which is not the mean of the samples' own losses,"
    raise ValueError(
        f"the loss gives {shape} for {len(targets)} samples; it must give one value per sample, as with "
        "reduction='none', or their mean."
    )
