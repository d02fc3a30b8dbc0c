"""`takes_models`: lets functions of vectors (d,) also accept modules, state dicts and paths of checkpoints."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from landscape.model.copies import HALF, dtype_attrs
from landscape.model.layout import Layout

if TYPE_CHECKING:
    from landscape.model.task import Task

Inputs = ParamSpec("Inputs")
Result = TypeVar("Result")

Model = Tensor | np.ndarray | nn.Module | Mapping[str, Tensor] | str | Path
"""A vector (d,), a tensor or an array, a module, a state dict, or the path of a checkpoint."""


def takes_models(*names: str) -> Callable[[Callable[Inputs, Result]], Callable[Inputs, Result]]:
    """Decorator: the arguments `names`, vectors (d,) or sequences of them, may also be any `Model`.

    The layout is that of the argument `task`, or of the Task whose method is decorated; a function without a task
    takes one as a further first argument, `plane(task, "a.pt", "b.pt", "c.pt")`. Without an argument `buffers`, the
    floating buffers of the models are used. Without labels, checkpoints have the names of their files.

    Raises:
        ValueError: If an argument is no model, one of another architecture, or vectors and state dicts are mixed where
            models have floating buffers.
        LookupError: If there is no such checkpoint.
    """

    def decorate(function: Callable[Inputs, Result]) -> Callable[Inputs, Result]:
        signature = inspect.signature(function)
        owned = {"task", "self"} & set(signature.parameters)

        @wraps(function)
        def wrapper(*args: Inputs.args, **options: Inputs.kwargs) -> Result:
            task = None
            if not owned:
                args, options, task = _without_task(args, options)
            bound = signature.bind(*args, **options)
            values = {name: bound.arguments[name] for name in names if name in bound.arguments}
            task = task or bound.arguments.get("task", bound.arguments.get("self"))
            if all(isinstance(value, Tensor) and value.dtype not in HALF for value in values.values()):
                return _said(function(*args, **options), task, ())
            if (texts := _labels(list(values.values()))) is not None:
                _add_labels(signature, bound, texts)
            values = {name: _loaded(value, task) for name, value in values.items()}
            layout = None if task is None else task.layout
            for name, value in values.items():
                bound.arguments[name] = _vectors(value, layout, f"{function.__name__}: {name}")
            lacks_buffers = "buffers" in signature.parameters and bound.arguments.get("buffers") is None
            if lacks_buffers and layout is not None and layout.buffer_size:
                bound.arguments["buffers"] = _buffers(list(values.values()), layout)
            return _said(function(*bound.args, **bound.kwargs), task, tuple(values.values()))

        return wrapper

    return decorate


def _said(result: Result, task: Task | None, values: tuple[Any, ...]) -> Result:
    """The result, whose attributes name the half precision in which models were stored, if they were."""
    models = [model for value in values for model in (value if _is_sequence(value) else [value])]
    if isinstance(attrs := getattr(result, "attrs", None), dict):
        attrs.update(dtype_attrs(*models, getattr(task, "model", None)))
    return result


def _without_task(args: Any, options: Any) -> tuple[Any, Any, Task | None]:
    """Arguments of a function without a task, and the task that was passed before them or by name."""
    if "task" in options:
        return args, {name: value for name, value in options.items() if name != "task"}, options["task"]
    if args and isinstance(getattr(args[0], "layout", None), Layout):
        return args[1:], options, args[0]
    return args, options, None


def _is_path(value: Any) -> bool:
    return isinstance(value, str | Path)


def _is_model(value: Any) -> bool:
    return isinstance(value, nn.Module | Mapping)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not _is_path(value)


def _loaded(value: Any, task: Task | None) -> Any:
    """State dicts by the names of the task's model in place of paths, modules and state dicts; tensors of arrays."""
    if _is_sequence(value):
        return [_loaded(model, task) for model in value]
    if isinstance(value, Tensor):
        return value.float() if value.dtype in HALF else value
    if isinstance(value, np.ndarray):
        vector = torch.from_numpy(value)
        return vector if task is None else vector.to(task.theta.dtype)
    if task is None or not (_is_path(value) or _is_model(value)):
        return value
    from landscape.model.checkpoint import read_state, state_of  # imports this module

    return read_state(value, task) if _is_path(value) else state_of(value, task)


def _vectors(value: Any, layout: Layout | None, name: str) -> Any:
    """Convert a model, or each model of a sequence, to a vector; tensors are returned as they are."""
    if isinstance(value, Tensor):
        return value
    if _is_model(value) and layout is not None:
        return layout.theta(value)
    if _is_model(value) or _is_path(value):
        recipe = "the task first, or task.layout.theta(model), or Layout.of(module).theta(model) without a task"
        raise ValueError(f"{name} is {_describe(value)}; it takes vectors (d,): give {recipe}.")
    if _is_sequence(value) and len(value):
        return [_vectors(model, layout, f"{name}[{place}]") for place, model in enumerate(value)]
    accepted = "a vector (d,), a state dict, a module or the path of a checkpoint"
    raise ValueError(f"{name} is {_describe(value)}; give {accepted}.")


def _describe(value: Any) -> str:
    if isinstance(value, nn.Module):
        return f"a module ({type(value).__name__})"
    if isinstance(value, Mapping):
        return "a state dict"
    if _is_path(value):
        return "a path"
    if _is_sequence(value) and not len(value):
        return "empty"
    return f"of type {type(value).__name__}"


def _buffers(values: list[Any], layout: Layout) -> Tensor | None:
    """Floating buffers: (b,) of one model, (n, b) of several; None if all are vectors."""
    models = [model for value in values for model in (value if isinstance(value, list | tuple) else [value])]
    if not any(map(_is_model, models)):
        return None
    if not all(map(_is_model, models)):
        raise ValueError(
            "some models are vectors and some are state dicts, and the model has floating buffers (such as BatchNorm "
            "statistics); give all as state dicts, or all as vectors with buffers."
        )
    buffers = torch.stack([layout.buffer_vector(model) for model in models])
    single = len(values) == 1 and _is_model(values[0])
    return buffers[0] if single else buffers


def _labels(values: list[Any]) -> list[str] | None:
    """Names of models by their files, with the folder where that is needed; None if they are not all paths."""
    models = [model for value in values for model in (value if _is_sequence(value) else [value])]
    if not models or not all(map(_is_path, models)):
        return None
    for depth in range(1, 4):
        texts = ["/".join(Path(path).with_suffix("").parts[-depth:]) for path in models]
        if len(set(texts)) == len(texts):
            return texts
    return None


def _add_labels(signature: inspect.Signature, bound: inspect.BoundArguments, texts: list[str]) -> None:
    """Add labels to the arguments of a function that takes some and was passed none."""
    for name, value in (("labels", texts), ("label", texts[0])):
        if name in signature.parameters and name not in bound.arguments:
            bound.arguments[name] = value
