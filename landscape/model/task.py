"""`Task`: an architecture, a loss function, metrics and the samples of each split; the usual losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from landscape.model.bound_model import Flat
from landscape.model.copies import copy_module
from landscape.model.input_format import Habits, habits
from landscape.model.layout import Layout
from landscape.model.model import with_buffers
from landscape.model.per_sample_losses import per_sample
from landscape.model.samples import Samples
from landscape.model.vectors import takes_models
from landscape.results.notebook_table import notebook_table

PerSample = Callable[[Tensor, Tensor], Tensor]
"""(outputs (n, ...), targets (n, ...)) -> one value per sample, shape (n,)."""

Split = str | Samples


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of logits (n, C) against class indices (n,), in nats."""
    return F.cross_entropy(outputs, targets, reduction="none")


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Squared distance of outputs to targets, summed over output dimensions."""
    return (outputs - targets.view_as(outputs)).square().flatten(1).sum(1)


def error(outputs: Tensor, targets: Tensor) -> Tensor:
    """1 where the largest logit (n, C) is not the target class (n,), else 0."""
    return (outputs.argmax(1) != targets).to(outputs.dtype)


_PER_SAMPLE = (cross_entropy, squared_error)
"""Losses that return one value per sample, without a check."""


@dataclass(frozen=True, repr=False)
class Task:
    """Model, loss, metrics and samples: what maps a vector theta to numbers.

    The model is copied: the caller's module, its mode and its gradients are never touched.

    Args:
        model: Any module; defines the architecture and, through `theta`, the initial values.
        samples: Samples by split name, such as train and test.
        loss: Per-sample loss, or the mean of such a loss; its mean over a split is the height of the landscape.
        metrics: Further per-sample values by name.
    """

    model: nn.Module
    samples: Mapping[str, Samples]
    loss: PerSample = cross_entropy
    metrics: Mapping[str, PerSample] = field(default_factory=lambda: {"error": error})

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", copy_module(self.model))

    def __repr__(self) -> str:
        """One line: model, number of parameters, samples by split, loss and metrics."""
        splits = ", ".join(f"{name} {len(samples)}" for name, samples in self.samples.items())
        metrics = ", ".join(self.metrics)
        loss = getattr(self.loss, "__name__", type(self.loss).__name__)
        return f"Task({type(self.model).__name__} of {self.layout.size} parameters, {splits}; {loss}; {metrics})"

    def _repr_html_(self) -> str:
        """A small table for notebooks: model, samples by split, loss and metrics."""
        rows: dict[str, object] = {"model": type(self.model).__name__, "parameters": self.layout.size}
        rows |= {f"samples of {name}": len(samples) for name, samples in self.samples.items()}
        rows |= {"loss": getattr(self.loss, "__name__", type(self.loss).__name__), "metrics": list(self.metrics)}
        return notebook_table(repr(self), rows)

    @cached_property
    def layout(self) -> Layout:
        """Where each parameter lies in theta."""
        return Layout.of(self.model)

    @property
    def theta(self) -> Tensor:
        """A copy of the initial parameters (d,) of the model; with floating buffers, a `Model` that carries them."""
        return with_buffers(self.layout.theta(self.model), self.buffers)

    @property
    def buffers(self) -> Tensor:
        """A copy of the initial floating buffers (b,) of the model."""
        return self.layout.buffer_vector(self.model)

    def flat(self, like: Tensor) -> Flat:
        """A private copy of the model over one vector, in the dtype and on the device of `like`."""
        return Flat(self.model, self.layout, self.per_sample, dtype=like.dtype, device=like.device, habits=self.habits)

    @cached_property
    def habits(self) -> Habits:
        """Requirements of the model on its inputs, measured on the first split that has samples."""
        split = next((samples for samples in self.samples.values() if len(samples)), None)
        theta = self.theta
        return (
            Habits() if split is None else habits(self.model, split.to(dtype=theta.dtype, device=theta.device).inputs)
        )

    @cached_property
    def per_sample(self) -> PerSample:
        """The loss with one value per sample; one that returns the mean of a batch is called sample by sample.

        Raises:
            ValueError: If the loss is neither.
        """
        split = next((samples[:3] for samples in self.samples.values() if len(samples) > 1), None)
        if self.loss in _PER_SAMPLE or split is None:
            return self.loss
        theta = self.theta
        flat = Flat(self.model, self.layout, self.loss, dtype=theta.dtype, device=theta.device, habits=self.habits)
        with torch.no_grad():
            outputs = flat.outputs(split.inputs)
        return per_sample(self.loss, outputs, split.targets.to(theta.device))

    def split(self, split: Split) -> Samples:
        """Samples of a split; `Samples` are returned as they are.

        Raises:
            ValueError: If there is no such split.
        """
        if isinstance(split, Samples):
            return split
        if split not in self.samples:
            raise ValueError(f"no split named {split!r}; the task has {', '.join(self.samples)}.")
        return self.samples[split]

    def measures(self, names: tuple[str, ...] | None = None) -> dict[str, PerSample]:
        """Per-sample functions by name, by default all; "loss" is the loss of the task.

        Raises:
            ValueError: If a name is unknown.
        """
        functions = {"loss": self.per_sample, **self.metrics}
        names = tuple(functions) if names is None else names
        if unknown := [name for name in names if name not in functions]:
            raise ValueError(f"no metric named {unknown[0]!r}; the task has {', '.join(functions)}.")
        return {name: functions[name] for name in names}

    @takes_models("theta")
    def outputs(self, theta: Tensor, split: Split, *, buffers: Tensor | None = None, block: int = 512) -> Tensor:
        """Model outputs (n, ...) in eval mode over a whole split, without gradients."""
        flat = self.flat(theta)
        flat.load(theta, buffers)
        with torch.no_grad():
            return torch.cat([flat.outputs(part.inputs) for part in self.split(split).blocks(block)])


def split_name(split: Split) -> str:
    """Name of a split in the attributes of a result."""
    return split if isinstance(split, str) else "given"


def metric_units(task: Task, metric: str) -> str:
    """Unit of a metric of the task: nats, fraction, or 1 for a loss that is not the cross-entropy."""
    if metric == "loss":
        return "nats" if task.loss is cross_entropy else "1"
    return "fraction" if metric in ("error", "accuracy") else "1"
