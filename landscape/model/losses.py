"""Losses as a numerator and a weight per sample: the mean over samples is sum(numerators) / sum(weights)."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap

from landscape.model.samples import Samples

PerSample = Callable[[Tensor, Tensor], Tensor]
"""(outputs (n, ...), targets (n, ...)) -> one value per sample, shape (n,)."""

Weigh = Callable[[Tensor], Tensor]
"""Targets (n, ...) -> the weights of the samples, shape (n,)."""

IGNORED = -100
"""Label of samples that do not count, as in torch."""


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of logits (n, C) against class indices (n,), in nats; label -100 has weight 0."""
    return F.cross_entropy(outputs, targets, reduction="none")


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Squared distance of outputs to targets, summed over output dimensions."""
    return (outputs - targets.view_as(outputs)).square().flatten(1).sum(1)


def error(outputs: Tensor, targets: Tensor) -> Tensor:
    """1 where the largest logit (n, C) is not the target class (n,), else 0; label -100 has weight 0.

    NaN where a logit is NaN, or the largest is infinite, which predicts no class: a model without a loss has no error.
    """
    return (outputs.argmax(1) != targets).to(outputs.dtype).where(outputs.amax(1).isfinite(), torch.nan)


@dataclass(frozen=True)
class SampleLoss:
    """A loss, or metric, whose samples have weights, or which is not a mean over samples.

    Args:
        values: Numerators (n,) of samples.
        weigh: Weights (n,) of samples by their targets; None: all are 1.
        batch: The user's own loss () of a batch, where it returns one number.
        kind: "mean"; "sum": over samples, not divided; "coupled": of all samples as one batch.
        name: For people.
        original: The user's own loss that it was found of.
    """

    values: PerSample
    weigh: Weigh | None = None
    batch: PerSample | None = None
    kind: Literal["mean", "sum", "coupled"] = "mean"
    name: str = "loss"
    original: PerSample | None = None

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Numerators (n,)."""
        return self.values(outputs, targets)


@dataclass(frozen=True)
class PerSampleLoss:
    """Numerators (n,): a loss that returns the mean of a batch, called on one sample at a time, times the weights."""

    loss: Callable[[Any, Tensor], Tensor]
    weigh: Weigh | None = None

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Numerator of every sample (n,); 0 where the weight is 0."""
        if self.weigh is None:
            return self.single_values(outputs, targets)
        weights = self.weigh(targets)
        entries = weights > 0
        values = self.single_values(outputs[entries], targets[entries]) if bool(entries.any()) else outputs.new_zeros(0)
        return values.new_zeros(len(targets)).index_put((entries,), values * weights[entries].to(values))

    def single_values(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Loss of every sample alone (n,)."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "There is a performance drop")  # torch, of vmap
            try:
                return vmap(self._single)(outputs, targets)
            except (RuntimeError, ValueError):  # vmap does not support an operation of the loss
                singles = zip(outputs, targets, strict=True)
                return torch.stack([self._single(output, target) for output, target in singles])

    def _single(self, output: Tensor, target: Tensor) -> Tensor:
        return self.loss(output[None], target[None]).reshape(())


@dataclass(frozen=True)
class WholeBatch:
    """The loss of a batch as the value of each of its samples (n,), so that their mean is the loss."""

    loss: PerSample

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The same value n times."""
        value = self.loss(outputs, targets)
        return (value if value.ndim == 0 else value.mean()).expand(len(targets))


def is_coupled(loss: PerSample) -> bool:
    """Whether the samples of a loss depend on each other, so that it needs all of them as one batch."""
    return isinstance(loss, SampleLoss) and loss.kind == "coupled"


def sample_weights(loss: PerSample, targets: Tensor) -> Tensor | None:
    """Weights (n,) of samples in the mean of a loss or metric; None if all are 1."""
    if loss is cross_entropy or loss is error:
        if targets.is_floating_point() or targets.ndim != 1:
            return None
        counted = targets != IGNORED
        # the answer of another device would have to be waited for
        return None if not targets.is_cuda and bool(counted.all()) else counted
    return loss.weigh(targets) if isinstance(loss, SampleLoss) and loss.weigh is not None else None


def counted(loss: PerSample, targets: Tensor) -> int:
    """Number of samples whose weight in the mean of a loss or metric is not 0."""
    weights = sample_weights(loss, targets)
    return len(targets) if weights is None else int(weights.count_nonzero())


def total_weight(loss: PerSample, targets: Tensor) -> float:
    """What the sum of numerators is divided by: the summed weights of samples; 1 for a sum or a coupled loss."""
    if isinstance(loss, SampleLoss) and loss.kind != "mean":
        return 1.0
    weights = sample_weights(loss, targets)
    return float(len(targets)) if weights is None else float(weights.double().sum())


def batch_mean(loss: PerSample, outputs: Tensor, targets: Tensor) -> Tensor:
    """Loss () of a batch; 0, with zero gradient, if none of its samples has weight.

    Raises:
        ValueError: If the outputs have a gradient, and the loss gives them none.
    """
    weights = sample_weights(loss, targets)
    if isinstance(loss, SampleLoss) and loss.batch is not None:
        empty = weights is not None and not bool((weights > 0).any())
        return 0 * outputs.sum() if empty else _with_gradient(loss.batch(outputs, targets), outputs, loss)
    values = _with_gradient(loss(outputs, targets), outputs, loss)
    if isinstance(loss, SampleLoss) and loss.kind == "sum":
        return values.sum()
    if weights is None:
        return values.mean()
    total = weights.to(values.dtype).sum()
    return values.sum() / total.where(total > 0, 1)


def _with_gradient(values: Tensor, outputs: Tensor, loss: PerSample) -> Tensor:
    if outputs.requires_grad and not values.requires_grad:
        raise ValueError(
            f"the loss {loss_name(loss)} has no gradient: it detaches the outputs (detach, item, numpy, no_grad) or "
            "counts them (argmax, comparisons); give one that torch can differentiate."
        )
    return values


def loss_blocks(loss: PerSample, samples: Samples, size: int) -> tuple[list[Samples], list[float]]:
    """Blocks of at most `size` samples, and the shares of their `batch_mean` in that of all; one block if coupled.

    The shares sum to 1 if the loss is a mean. They are NaN if no sample has weight: there is no mean.
    """
    if is_coupled(loss):
        return [samples], [1.0]
    blocks, total = list(samples.blocks(size)), total_weight(loss, samples.targets)
    return blocks, [total_weight(loss, block.targets) / total if total else float("nan") for block in blocks]


def group_weights(loss: PerSample, targets: Tensor, groups: Tensor) -> Tensor:
    """Summed weights of the samples in each group 0, 1, .., shape (groups,), float64.

    Raises:
        ValueError: If the loss is not a mean over samples.
    """
    if isinstance(loss, SampleLoss) and loss.kind != "mean":
        raise ValueError(f"{loss.name} is not a mean over samples ({loss.kind}): parts of a split do not add up to it.")
    weights = sample_weights(loss, targets)
    return torch.bincount(groups.cpu(), None if weights is None else weights.double().cpu()).double()


def normalised(loss: PerSample, outputs: Tensor, targets: Tensor) -> Tensor:
    """Losses (n,) of single samples: numerator by weight, NaN where the weight is 0, and of a coupled loss."""
    if is_coupled(loss):
        return outputs.new_full((len(targets),), torch.nan)
    values, weights = loss(outputs, targets), sample_weights(loss, targets)
    return values if weights is None else values / weights.to(values)


def loss_name(loss: Any) -> str:
    """Name of a loss for people: of the class or function, and what is special about its mean."""
    return loss.name if isinstance(loss, SampleLoss) else getattr(loss, "__name__", type(loss).__name__)
