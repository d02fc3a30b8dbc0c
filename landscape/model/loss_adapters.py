"""Parts of a user's loss: of a pair, as one number, as means of the entries of samples, times weights."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from landscape.model.loss_trial import Loss
from landscape.model.losses import PerSample, Weigh, loss_name


@dataclass(frozen=True)
class LossOutput:
    """One part of a loss that returns (numerators (n,), weights (n,)); weights are read at outputs of zeros."""

    loss: Loss
    index: int
    like: tuple[int, ...] = ()
    dtype: torch.dtype = torch.float32

    def __call__(self, *stated: Tensor) -> Tensor:
        if self.index == 0:
            return self.loss(*stated)[0]
        (targets,) = stated
        zeros = torch.zeros((), dtype=self.dtype, device=targets.device).expand(len(targets), *self.like)
        with torch.no_grad():
            return self.loss(zeros, targets)[1]


@dataclass(frozen=True)
class BatchNumber:
    """A loss of one number, as a tensor ()."""

    loss: Loss

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return self.loss(outputs, targets).reshape(())


@dataclass(frozen=True)
class SampleMeans:
    """Values (n,) of a loss of torch without reduction: means or sums over the entries of each sample."""

    loss: nn.Module
    mean: bool

    @property
    def __name__(self) -> str:
        return loss_name(self.loss)

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        values = self.loss(outputs, targets)
        if values.ndim == 1:
            return values
        return values.flatten(1).mean(1) if self.mean else values.flatten(1).sum(1)


@dataclass(frozen=True)
class Weighted:
    """Numerators (n,): values of samples times their weights, 0 where the weight is."""

    loss: PerSample
    weigh: Weigh

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        weights = self.weigh(targets)
        counted = weights > 0
        values = self.loss(outputs[counted], targets[counted]) * weights[counted].to(outputs)
        return values.new_zeros(len(targets)).index_put((counted,), values)
