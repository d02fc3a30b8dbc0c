"""`make_task`: a `Task` of a model, a loss and data of any usual kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from landscape.model.bound_model import without_fused_encoders
from landscape.model.copies import copy_module, in_float32
from landscape.model.data_formats import samples_from
from landscape.model.loss_failures import FAILS, first_line
from landscape.model.loss_forms import as_module, found_loss
from landscape.model.losses import IGNORED, Weigh, cross_entropy, loss_name, total_weight
from landscape.model.metrics import error_of
from landscape.model.model_loss import logits_of, model_loss
from landscape.model.samples import Samples, call_module, leaves, map_leaves
from landscape.model.task import Task
from landscape.model.whole_products import plain_modes


@plain_modes()
def make_task(
    model: nn.Module | Callable[[], nn.Module],
    loss: Callable[[Any, Tensor], Any] | None,
    data: Any,
    *,
    weight: Weigh | Tensor | None = None,
    coupled: bool = False,
) -> Task:
    """A task: what every analysis computes the loss of.

        task = landscape.make_task(net, nn.CrossEntropyLoss(), {"train": (x, y), "test": test_loader})

    The loss of a split is sum(numerators) / sum(weights) over its samples, which is what `loss(outputs, targets)` gives
    for the whole split as one batch: with class weights, `ignore_index`, smoothing, NaN masks and sums. The loss is
    tried on 64 spread samples and on the targets of all splits, in batches of many sizes; `repr` says what was found. A
    minibatch of training has the user's own loss of that minibatch, 0 if nothing in it counts.

    The task also has the metric `error` if targets are classes and the model has one output per class; in it ignored
    labels do not count. Of a model of transformers the logits are the output.

    Args:
        model: A module, which is copied, or a function or class without arguments that returns one.
        loss: (outputs, targets) -> one value per sample, a mean or sum over samples, or a pair (numerators, weights),
            each (n,). None: the loss that a model of transformers returns itself when it is given `labels`.
        data: By split, {"train": .., "test": ..}, or one split used for both: (inputs, targets) as tensors or arrays,
            a Dataset, a DataLoader, a Hugging Face dataset, a table with a column `labels`, or `Samples`.
        weight: Weights of the samples in the mean, where they cannot be found: a function targets -> (n,), or those
            of classes, shape (C,).
        coupled: Take the loss of a split as one batch: for losses (Dice, contrastive) and models (batch normalisation
            without running statistics) whose samples depend on each other. Needs memory for the whole split.

    Raises:
        ValueError: If model, loss or data has another kind, the model or loss is random, or the loss is not a mean over
            samples; the message says what to do.
    """
    module = in_float32(_module(model))
    splits = _splits(data, module)
    split = next((samples for name in ("test", *splits) if len(samples := splits[name])), splits["train"])
    module, outputs, returned_loss = _with_tensor_output(module, split[:8], own_loss=loss is None)
    loss = returned_loss or loss
    if not callable(loss) or isinstance(loss, type):
        raise ValueError(
            f"the loss is {loss!r}; give a function (outputs, targets), such as nn.CrossEntropyLoss() with brackets."
        )
    task = Task(module, splits, loss, {})
    for name, stated in splits.items():
        _require_labels(loss, outputs, stated.targets, name)
    trial = task.trial(coupled=coupled)
    form = loss if trial is None else found_loss(loss, trial, weight=weight, coupled=coupled)
    for name, stated in splits.items():
        if total_weight(form, stated.targets) == 0:
            raise ValueError(f"split {name!r}: no sample counts in the loss ({loss_name(form)}): all are ignored.")
    targets = split.targets
    classes = outputs.ndim == 2 and outputs.shape[1] > 1 and not outputs.is_complex()
    classes = classes and targets.ndim == 1 and not targets.is_floating_point()
    made = replace(task, loss=form, metrics={"error": error_of(form)} if classes else {})
    made._tried.update(task._tried)
    return made


def task_from(made: Any) -> Task:
    """A task, returned as it is, or built by `make_task` from a tuple (model, loss, samples).

    Args:
        made: A `Task`, or (model, loss, samples).

    Raises:
        ValueError: If the argument or the loss has another kind.
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
        try:
            signature(model).bind()
        except TypeError as reason:
            what = "class" if isinstance(model, type) else "function"
            raise ValueError(
                f"the model is the {what} {loss_name(model)}, which takes arguments ({reason}); give a module, or a "
                "function without arguments that returns one."
            ) from reason
        model = model()
    if isinstance(model, torch.jit.ScriptModule):
        raise ValueError("the model is TorchScript, whose parameters cannot be replaced; give the module it came from.")
    if isinstance(model, nn.Module) and any(
        isinstance(tensor, _UNSHAPED) for tensor in (*model.parameters(), *model.buffers())
    ):
        raise ValueError("the model has layers without a shape (LazyLinear and the like); call it once, model(inputs).")
    if not isinstance(model, nn.Module):
        raise ValueError(f"the model is a {type(model).__name__}; give a module, or a function that returns one.")
    tensors = (*model.parameters(), *model.buffers())
    if any(tensor.is_meta for tensor in tensors):
        raise ValueError("the model is on the device meta, which holds no values; build it on the CPU.")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError(
            f"no parameter of {type(model).__name__} is trained (requires_grad), so there is nothing to move; say "
            "which are, for instance model.requires_grad_() for all."
        )
    return model


_UNSHAPED = (nn.parameter.UninitializedParameter, nn.parameter.UninitializedBuffer)


def _splits(data: Any, module: nn.Module) -> dict[str, Samples]:
    by_split = isinstance(data, Mapping) and not any(isinstance(value, Tensor | np.ndarray) for value in data.values())
    if by_split and "train" not in data:
        raise ValueError(f"data has the splits {', '.join(map(str, data))}; give train, and test where there is.")
    if by_split:
        splits = {str(name): samples_from(values, module, str(name)) for name, values in data.items()}
        return {"test": splits["train"], **splits}
    samples = samples_from(data, module, "train")
    return {"train": samples, "test": samples}


@torch.no_grad()
def _with_tensor_output(module: nn.Module, few: Samples, own_loss: bool) -> tuple[nn.Module, Tensor, Any]:
    """The module, or a copy whose output is its logits, its outputs (n, ...) in eval mode, and its own loss or None."""
    trial = copy_module(module).eval()
    device = next((parameter.device for parameter in trial.parameters()), torch.device("cpu"))
    few = few.to(device=device)
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            outputs: Any = call_module(without_fused_encoders(trial), map_leaves(torch.clone, few.inputs))
    except FAILS as reason:
        raise ValueError(_failed(module, few, reason)) from reason
    returned_loss = None
    if (logits := logits_of(outputs)) is not None:
        returned_loss = model_loss(trial, few, outputs, logits) if own_loss else None
        module, outputs = copy_module(module), logits
        module.register_forward_hook(_logits)
    if not isinstance(outputs, Tensor):
        raise ValueError(
            f"the model returns a {type(outputs).__name__}; a task needs one tensor: wrap the model in a module that "
            "returns it."
        )
    return module, outputs, returned_loss


def _failed(module: nn.Module, few: Samples, reason: Exception) -> str:
    """What inputs a module failed on, torch's words for it, and the usual remedy."""
    kinds = {leaf.dtype for leaf in leaves(few.inputs)}
    forms = ", ".join(f"{tuple(leaf.shape)} {str(leaf.dtype).removeprefix('torch.')}" for leaf in leaves(few.inputs))
    advice = "; give the inputs that its first layer takes."
    if torch.uint8 in kinds:
        advice = "; give scaled pixels, for instance images / 255."
    elif not any(kind.is_floating_point for kind in kinds):
        advice = "; if they are numbers and not places in a table, give inputs.float()."
    return f"{type(module).__name__} fails on the inputs {forms}: {first_line(reason)}{advice}"


def _require_labels(loss: Any, outputs: Tensor, targets: Tensor, split: str) -> None:
    """Refuse labels that are no class of the model, in losses of torch that would end the program on a GPU.

    Raises:
        ValueError: With the first such sample.
    """
    loss = as_module(loss)
    known = isinstance(loss, nn.CrossEntropyLoss | nn.NLLLoss) or loss is cross_entropy
    if not known or outputs.shape[2:] != targets.shape[1:] or targets.is_floating_point():
        return
    classes = outputs.shape[1]
    wrong = (targets != getattr(loss, "ignore_index", IGNORED)) & ((targets < 0) | (targets >= classes))
    if bool(wrong.any()):
        index, label = int(wrong.nonzero()[0, 0]), targets[wrong][0].item()
        raise ValueError(
            f"split {split!r}: sample {index} has the label {label}, and the model has {classes} classes: labels are 0 "
            f"to {classes - 1}. If it stands for no class, ignore it: nn.CrossEntropyLoss(ignore_index={label})."
        )


def _logits(module: nn.Module, inputs: Any, outputs: Any) -> Tensor | None:
    return logits_of(outputs)
