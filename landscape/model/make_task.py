"""`make_task`: a `Task` of a model, a loss and data of any usual kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from landscape.model.copies import copy_module, in_float32
from landscape.model.data_formats import samples_from
from landscape.model.samples import Samples, call_module
from landscape.model.task import Task, cross_entropy, error


def make_task(model: nn.Module | Callable[[], nn.Module], loss: Callable[[Any, Tensor], Tensor], data: Any) -> Task:
    """A task: what every analysis computes the loss of.

        task = landscape.make_task(net, nn.CrossEntropyLoss(), {"train": (x, y), "test": test_loader})

    The task also has the metric `error` if targets are classes and the model has one output per class. Of a model of
    transformers the logits are the output.

    Args:
        model: A module, which is copied, or a function or class without arguments that returns one.
        loss: (outputs, targets) -> one value per sample, or the mean of such values; it is tried on a few samples.
        data: By split, {"train": .., "test": ..}, or one split used for both: (inputs, targets) as tensors or arrays,
            a Dataset, a DataLoader, a Hugging Face dataset, a table with a column `labels`, or `Samples`.

    Raises:
        ValueError: If model, loss or data is of another kind; the message says which are accepted.
    """
    module = in_float32(_module(model))
    splits = _splits(data, module)
    split = next((samples for name in ("test", *splits) if len(samples := splits[name])), splits["train"])
    module, outputs = _with_tensor_output(module, split[:8])
    targets = split[:8].targets
    if not callable(loss):
        raise ValueError(f"the loss is {loss!r}; give a function (outputs, targets), such as nn.CrossEntropyLoss().")
    classes = outputs.ndim == 2 and outputs.shape[1] > 1 and targets.ndim == 1 and not targets.is_floating_point()
    task = Task(module, splits, _unreduced(loss, outputs, targets), {"error": error} if classes else {})
    _ = task.per_sample  # refuses a loss that is neither
    return task


def task_from(made: Any) -> Task:
    """A task, returned as it is, or built by `make_task` from a tuple (model, loss, samples).

    Args:
        made: A `Task`, or (model, loss, samples).

    Raises:
        ValueError: If the argument or the loss is of another kind.
    """
    if isinstance(made, Task):
        return made
    if not isinstance(made, tuple) or len(made) != 3 or not callable(made[0]):
        kind = f"tuple of {len(made)}" if isinstance(made, tuple) else type(made).__name__
        raise ValueError(
            f"the task given is a {kind}; give landscape.Task(model, samples, loss) or (model, loss, samples)."
        )
    return make_task(*made)


def _module(model: Any) -> nn.Module:
    if not isinstance(model, nn.Module) and callable(model):
        model = model()
    if not isinstance(model, nn.Module):
        raise ValueError(f"the model is a {type(model).__name__}; give a module, or a function that returns one.")
    return model


def _splits(data: Any, module: nn.Module) -> dict[str, Samples]:
    by_split = isinstance(data, Mapping) and not any(isinstance(value, Tensor) for value in data.values())
    if by_split and "train" not in data:
        raise ValueError(f"data has the splits {', '.join(map(str, data))}; give train, and test where there is.")
    if by_split:
        splits = {str(name): samples_from(part, module, str(name)) for name, part in data.items()}
        return {"test": splits["train"], **splits}
    samples = samples_from(data, module, "train")
    return {"train": samples, "test": samples}


@torch.no_grad()
def _with_tensor_output(module: nn.Module, few: Samples) -> tuple[nn.Module, Tensor]:
    """The module, or a copy whose output is its logits, and its outputs (n, ...) on a few samples in eval mode."""
    trial = copy_module(module).eval()
    device = next((parameter.device for parameter in trial.parameters()), torch.device("cpu"))
    inputs = few.to(device=device).inputs
    try:
        outputs: Any = call_module(trial, inputs)
    except RuntimeError as reason:
        if isinstance(inputs, Tensor) and inputs.dtype == torch.uint8:
            raise ValueError(
                f"the inputs are bytes (uint8), which the model does not take ({str(reason).splitlines()[0]}); "
                "give scaled pixels, for instance images / 255."
            ) from reason
        raise
    if isinstance(logits := getattr(outputs, "logits", None), Tensor):
        module, outputs = copy_module(module), logits
        module.register_forward_hook(_logits)
    if not isinstance(outputs, Tensor):
        raise ValueError(
            f"the model returns a {type(outputs).__name__}; a task needs one tensor: wrap the model in a module that "
            "returns it."
        )
    return module, outputs


def _logits(module: nn.Module, inputs: Any, outputs: Any) -> Tensor:
    return outputs.logits


@dataclass(frozen=True)
class Unreduced:
    """Per-sample losses (n,) of a loss without reduction: the means over the entries of each sample."""

    loss: nn.Module

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Loss of every sample (n,)."""
        values = self.loss(outputs, targets)
        return values if values.ndim == 1 else values.flatten(1).mean(1)


@torch.no_grad()
def _unreduced(loss: Any, outputs: Tensor, targets: Tensor) -> Any:
    """The loss with one value per sample where torch has it: called once per batch instead of once per sample."""
    classes = outputs.ndim == 2 and targets.ndim == 1 and not targets.is_floating_point()
    if classes and (loss is F.cross_entropy or _is_plain_cross_entropy(loss)):
        return cross_entropy
    if not isinstance(loss, nn.Module) or getattr(loss, "reduction", None) != "mean":
        return loss
    unreduced = copy(loss)
    unreduced.reduction = "none"  # type: ignore[assignment]
    targets = targets.to(outputs.device)
    values, mean = unreduced(outputs, targets), loss(outputs, targets)
    if values.shape[:1] != targets.shape[:1] or not torch.allclose(Unreduced(unreduced)(outputs, targets).mean(), mean):
        return loss  # a weighted mean, for example, which `Task.per_sample` judges
    return Unreduced(unreduced)


def _is_plain_cross_entropy(loss: Any) -> bool:
    plain = nn.CrossEntropyLoss()
    settings = ("weight", "ignore_index", "label_smoothing")
    return (
        type(loss) is nn.CrossEntropyLoss
        and loss.reduction in ("mean", "none")
        and all(getattr(loss, name) == getattr(plain, name) for name in settings)
    )
