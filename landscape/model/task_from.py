"""`task_from`: a `Task` from a tuple (module, loss, samples)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from landscape.model.samples import Samples
from landscape.model.task import Task, error


def task_from(made: Any) -> Task:
    """A task, returned as it is, or built from a tuple (model, loss, samples).

    Samples are a dict by split, `{"train": (x, y), "test": (x, y)}`, of pairs of tensors or `Samples`; or one pair,
    used for both train and test. The loss returns one value per sample, as `nn.CrossEntropyLoss(reduction="none")`
    does, or the mean of such values. The task also has the metric `error` if targets are classes and the model has one
    output per class.

    Args:
        made: A `Task`, or (model, loss, samples).

    Raises:
        ValueError: If the argument or the loss is of another kind.
    """
    if isinstance(made, Task):
        return made
    if not isinstance(made, tuple) or len(made) != 3 or not isinstance(made[0], nn.Module):
        kind = f"tuple of {len(made)}" if isinstance(made, tuple) else type(made).__name__
        raise ValueError(
            f"the task given is a {kind}; give landscape.Task(model, samples, loss) or (model, loss, samples)."
        )
    model, loss, samples = made
    task = Task(model, _splits(samples), loss, {})
    split = task.samples.get("test") or next(iter(task.samples.values()))
    outputs, targets = task.outputs(task.theta, split[:2]), split[:2].targets
    classes = outputs.ndim == 2 and outputs.shape[1] > 1 and targets.ndim == 1 and not targets.is_floating_point()
    return Task(model, task.samples, loss, {"error": error} if classes else {})


def _splits(samples: Any) -> dict[str, Samples]:
    if not isinstance(samples, Mapping):
        samples = {"train": samples, "test": samples}
    elif "train" not in samples:
        raise ValueError(f"samples has the splits {', '.join(map(str, samples))}; give train, and test where there is.")
    splits = {}
    for name, pair in samples.items():
        if not isinstance(pair, Samples) and not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise ValueError(f"split {name!r} is a {type(pair).__name__}; give (inputs, targets) as tensors.")
        splits[str(name)] = pair if isinstance(pair, Samples) else Samples(*pair)
    return {"test": splits["train"], **splits}
