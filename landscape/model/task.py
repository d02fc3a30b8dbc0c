"""`Task`: an architecture, a loss function, metrics and the samples of each split; the usual losses."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor, nn

from landscape.model.binary_losses import binary_cross_entropy, binary_error
from landscape.model.bound_model import Flat
from landscape.model.copies import copy_module, in_float32
from landscape.model.held_values import digest
from landscape.model.input_format import Habits, habits
from landscape.model.layout import Layout
from landscape.model.loss_forms import KNOWN, found_loss, require_metric, require_same_loss
from landscape.model.loss_trial import Trial
from landscape.model.loss_weights import ignored_label
from landscape.model.losses import IGNORED, SampleLoss, is_coupled, loss_name
from landscape.model.losses import PerSample as PerSample
from landscape.model.losses import cross_entropy as cross_entropy
from landscape.model.losses import error as error
from landscape.model.losses import squared_error as squared_error
from landscape.model.model import with_buffers
from landscape.model.model_trial import SAMPLES, tried_outputs
from landscape.model.samples import Samples
from landscape.model.token_losses import token_cross_entropy
from landscape.model.vectors import takes_models
from landscape.results.notebook_table import notebook_table

Split = str | Samples

_METRICS: tuple[PerSample, ...] = (error, binary_error)
"""Metrics that are not tried."""

_RESERVED = ("", "loss", "mark", "group", "class", "t", "alpha", "beta", "gamma", "delta")
"""Names of other variables and coordinates of results."""


@dataclass(frozen=True, repr=False)
class Task:
    """Model, loss, metrics and samples: what maps a vector theta to numbers.

    The model is copied: the caller's module, its mode and its gradients are never touched. Model, loss and metrics are
    tried at their first use, as `landscape.make_task` tries them.

    Args:
        model: Any module; defines the architecture and, through `theta`, the initial values.
        samples: Samples by split name, such as train and test.
        loss: One value per sample, or a mean or sum over samples; its value for a split is the height of the landscape.
        metrics: Further per-sample values by name, which is none of another variable of results.

    Raises:
        ValueError: If a metric has a name such as loss or mark.
    """

    model: nn.Module
    samples: Mapping[str, Samples]
    loss: PerSample = cross_entropy
    metrics: Mapping[str, PerSample] = field(default_factory=lambda: {"error": error})

    def __post_init__(self) -> None:
        if taken := [name for name in self.metrics if name in _RESERVED or name.startswith("mark_")]:
            raise ValueError(f"a metric is named {taken[0]!r}, which has another meaning in results; rename it.")
        object.__setattr__(self, "model", copy_module(in_float32(self.model)))

    def __repr__(self) -> str:
        """One line: model, number of parameters, outputs, targets, loss, samples by split and metrics."""
        return f"Task({', '.join(f'{name} {value}' for name, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        """The same as a small table for notebooks."""
        return notebook_table(repr(self), self._facts())

    def _facts(self) -> dict[str, object]:
        facts: dict[str, object] = {"model": type(self.model).__name__, "parameters": self.layout.size}
        few = next((samples[:1] for samples in self.samples.values() if len(samples)), None)
        if few is not None:
            with suppress(RuntimeError, ValueError):  # of a model that fails or is refused, which evaluation tells
                facts["outputs"] = tuple(self.outputs(self.theta, few).shape[1:])
            facts["targets"] = f"{tuple(few.targets.shape[1:])} {str(few.targets.dtype).removeprefix('torch.')}"
        facts["loss"] = loss_name(self.loss)
        facts |= {f"samples of {name}": len(samples) for name, samples in self.samples.items()}
        return facts | {"metrics": ", ".join(self.metrics) or "none"}

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

    def digest(self, *samples: Samples) -> str:
        """Sixteen hexadecimal digits of what makes loss and metrics of theta (d,) on samples.

        All that model, loss and metrics hold counts (`landscape.model.held_values`), but the trained parameters.
        """
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        return digest(str(self.model), self.model, self.loss, self.metrics, samples, besides=trained)

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
        """The loss as numerators, and weights where they are not 1 (`landscape.model.losses`).

        Raises:
            ValueError: If model or loss is random, or the loss is not a mean over samples.
        """
        if self.loss in KNOWN or isinstance(self.loss, SampleLoss):
            return self.loss
        trial = self.trial()
        return self.loss if trial is None else found_loss(self.loss, trial)

    def trial(self, *, coupled: bool = False) -> Trial | None:
        """Outputs of some samples, and the targets of all splits, to try a loss on; None without samples.

        Raises:
            ValueError: If the model is random in eval mode, or, unless `coupled`, its samples depend on each other.
        """
        splits = [samples for samples in self.samples.values() if len(samples)]
        if not splits:
            return None
        trial = self._trial_of(splits, coupled=coupled)
        self._tried[splits[0].kind] = len(splits[0])
        return trial

    def _trial_of(self, splits: list[Samples], *, coupled: bool) -> Trial:
        theta = self.theta
        flat = Flat(self.model, self.layout, self.loss, dtype=theta.dtype, device=theta.device, habits=self.habits)
        return tried_outputs(flat, self.model, splits, coupled=coupled)

    def split(self, split: Split) -> Samples:
        """Samples of a split; `Samples` are returned as they are. Model and loss are tried on each new kind of samples.

        Raises:
            ValueError: If there is no such split, or the loss is another one of samples of these shapes.
        """
        if not isinstance(split, Samples) and split not in self.samples:
            raise ValueError(f"no split named {split!r}; the task has {', '.join(self.samples)}.")
        samples = split if isinstance(split, Samples) else self.samples[split]
        loss = self.per_sample
        kind, number = samples.kind, min(len(samples), SAMPLES)
        if number > self._tried.get(kind, 0):
            require_same_loss(loss, self._trial_of([samples], coupled=is_coupled(loss)))
            self._tried[kind] = number
        return samples

    @cached_property
    def _tried(self) -> dict[Hashable, int]:
        """How many samples of each kind model and loss were tried on; and the names of the metrics that were tried."""
        return {}

    def labels(self, split: Split) -> Tensor:
        """Class numbers (n,) of the samples of a split, -100 in the place of labels that the loss ignores."""
        targets = self.split(split).targets
        return targets.masked_fill(targets == ignored_label(self.per_sample), IGNORED)

    def measures(self, names: tuple[str, ...] | None = None) -> dict[str, PerSample]:
        """Per-sample functions by name, by default all; "loss" is the loss of the task.

        Raises:
            ValueError: If a name is unknown, or a metric is random or depends on the other samples of a batch.
        """
        functions = {"loss": self.per_sample, **self.metrics}
        names = tuple(functions) if names is None else names
        if unknown := [name for name in names if name not in functions]:
            raise ValueError(f"no metric named {unknown[0]!r}; the task has {', '.join(functions)}.")
        measures = {name: functions[name] for name in names}
        known = {name for name, metric in measures.items() if metric in _METRICS or isinstance(metric, SampleLoss)}
        fresh = measures.keys() - known - self._tried.keys() - {"loss"}
        if fresh and (trial := self.trial(coupled=is_coupled(self.per_sample))) is not None:
            for name in fresh:
                require_metric(name, measures[name], trial)
            self._tried.update(dict.fromkeys(fresh, 1))
        return measures

    @takes_models("theta")
    def outputs(self, theta: Tensor, split: Split, *, buffers: Tensor | None = None, block: int = 512) -> Tensor:
        """Model outputs (n, ...) in eval mode over a whole split, without gradients."""
        flat = self.flat(theta)
        flat.load(theta, buffers)
        samples = self.split(split)
        block = max(1, len(samples)) if is_coupled(self.loss) else block
        with torch.no_grad():
            return torch.cat([flat.outputs(block.inputs) for block in samples.blocks(block)])


def split_name(split: Split) -> str:
    """Name of a split in the attributes of a result."""
    return split if isinstance(split, str) else "given"


def metric_units(task: Task, metric: str) -> str:
    """Unit of a metric of the task: nats, fraction, or 1 for a loss that is no cross-entropy."""
    if metric == "loss":
        return "nats" if task.loss in (cross_entropy, binary_cross_entropy, token_cross_entropy) else "1"
    return "fraction" if metric in ("error", "accuracy", "class_error") else "1"
