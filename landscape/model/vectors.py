"""`takes_models`: lets functions of vectors (d,) also accept state dicts and modules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor, nn

from landscape.model.layout import Layout

Inputs = ParamSpec("Inputs")
Result = TypeVar("Result")


def takes_models(*names: str) -> Callable[[Callable[Inputs, Result]], Callable[Inputs, Result]]:
    """Decorator: the arguments `names`, vectors (d,) or sequences of them, may also be state dicts or modules.

    The layout is that of the argument `task`, or of the Task whose method is decorated. Without an argument `buffers`,
    the floating buffers of the state dicts are used. A function without a task accepts vectors only; its error message
    names the conversion.

    Raises:
        ValueError: If an argument is no model, one of another architecture, or vectors and state dicts are mixed where
            models have floating buffers.
    """

    def decorate(function: Callable[Inputs, Result]) -> Callable[Inputs, Result]:
        signature = inspect.signature(function)

        @wraps(function)
        def wrapper(*args: Inputs.args, **options: Inputs.kwargs) -> Result:
            bound = signature.bind(*args, **options)
            values = {name: bound.arguments[name] for name in names if name in bound.arguments}
            if all(isinstance(value, Tensor) for value in values.values()):
                return function(*args, **options)
            task = bound.arguments.get("task", bound.arguments.get("self"))
            layout = None if task is None else task.layout
            for name, value in values.items():
                bound.arguments[name] = _vectors(value, layout, f"{function.__name__}: {name}")
            lacks_buffers = "buffers" in signature.parameters and bound.arguments.get("buffers") is None
            if lacks_buffers and layout is not None and layout.buffer_size:
                bound.arguments["buffers"] = _buffers(list(values.values()), layout)
            return function(*bound.args, **bound.kwargs)

        return wrapper

    return decorate


def _is_model(value: Any) -> bool:
    return isinstance(value, nn.Module | Mapping)


def _vectors(value: Any, layout: Layout | None, name: str) -> Any:
    """Convert a model, or each model of a sequence, to a vector; tensors are returned as they are."""
    if isinstance(value, Tensor):
        return value
    if _is_model(value):
        if layout is not None:
            return layout.theta(value)
        recipe = "task.layout.theta(model), or Layout.of(module).theta(model) without a task"
        raise ValueError(f"{name} is {_describe(value)}; it takes vectors (d,): give {recipe}.")
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value):
        return [_vectors(model, layout, f"{name}[{place}]") for place, model in enumerate(value)]
    raise ValueError(f"{name} is {_describe(value)}; give a vector (d,), a state dict or a module.")


def _describe(value: Any) -> str:
    if isinstance(value, nn.Module):
        return f"a module ({type(value).__name__})"
    if isinstance(value, Mapping):
        return "a state dict"
    if isinstance(value, Sequence) and not isinstance(value, str) and not len(value):
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
