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

from landscape.model.buffers import model_buffers, require_buffers
from landscape.model.copies import HALF, dtype_attrs
from landscape.model.layout import Layout
from landscape.model.model import Model, plain
from landscape.model.whole_products import plain_modes, whole_products
from landscape.plugins.option_types import require_options
from landscape.results.stated import state, states_statistics

if TYPE_CHECKING:
    from landscape.model.task import Task

Inputs = ParamSpec("Inputs")
Result = TypeVar("Result")

POSITIVE = ("block", "max_products", "tolerance")
"""Arguments of any function that are above 0."""

AnyModel = Tensor | np.ndarray | nn.Module | Mapping[str, Tensor] | Sequence[np.ndarray | Tensor] | str | Path
"""A vector (d,), a `Model` or an array, a module, a state dict or its values in order, or the path of a checkpoint."""

SEVERAL = ("models", "basis")
"""Names of arguments that are sequences of models."""

ACCEPTED = "a vector (d,), a state dict or the list of its arrays, a module or the path of a checkpoint"


def takes_models(
    *names: str, directions: tuple[str, ...] = ()
) -> Callable[[Callable[Inputs, Result]], Callable[Inputs, Result]]:
    """Decorator: the arguments `names`, vectors (d,) or sequences of them, may also be any `AnyModel`.

    The layout is that of the argument `task`, or of the Task whose method is decorated; a function without a task
    takes one as a further first argument, `plane(task, "a.pt", "b.pt", "c.pt")`. Without an argument `buffers`, the
    floating buffers of the models are used; the attribute `statistics` of a dataset is then "own", else "given".
    Without labels, checkpoints have the names of their files.

    Args:
        directions: Further arguments that may be any `AnyModel`, of which the buffers play no part.

    Raises:
        ValueError: If a number is of another type than its annotation, or a size not above 0; an argument is no model,
            one of another architecture or with a negative variance; or a vector lacks the floating buffers that the
            model has, where neither `buffers` nor `statistics` is given.
        LookupError: If there is no such checkpoint.
    """

    def decorate(function: Callable[Inputs, Result]) -> Callable[Inputs, Result]:
        signature = inspect.signature(function)
        owned = {"task", "self"} & set(signature.parameters)
        has_attributes = signature.return_annotation == "xr.Dataset"  # as text: xarray is not loaded for it

        @wraps(function)
        @plain_modes()
        def wrapper(*args: Inputs.args, **options: Inputs.kwargs) -> Result:
            task = None
            if not owned:
                args, options, task = _without_task(args, options)
            bound = signature.bind(*args, **options)
            _require_sizes(function, {key: value for key, value in bound.arguments.items() if key not in names})
            values = {name: bound.arguments[name] for name in (*names, *directions) if name in bound.arguments}
            task = task or bound.arguments.get("task", bound.arguments.get("self"))
            if (texts := _labels(list(values.values()))) is not None:
                _add_labels(signature, bound, texts)
            values = {name: _loaded(value, task) for name, value in values.items()}
            layout = None if task is None else task.layout
            for name, value in values.items():
                bound.arguments[name] = _vectors(value, layout, f"{function.__name__}: {name}", name in SEVERAL)
            stated = ""
            if "buffers" in signature.parameters and (layout is None or layout.buffers):
                stated = "own" if bound.arguments.get("buffers") is None else "given"
                if stated == "own":
                    buffers = model_buffers([value for name, value in values.items() if name in names], layout)
                    if layout is not None and not _says_statistics(bound.arguments):
                        require_buffers(buffers, layout, f"{function.__name__}: {names[0]} is given")
                    bound.arguments["buffers"] = buffers
            with whole_products(None if task is None else task.model):
                result: Any = function(*bound.args, **bound.kwargs)
            if has_attributes and stated and layout is not None:
                result.attrs.setdefault("statistics", stated)
            elif stated == "own" and layout is not None and "evaluation" not in signature.parameters:
                state({"statistics": "own"})  # given ones are stated by whoever gives them, evaluations by `evaluate`
            return _with_dtypes(result, task, tuple(values.values()))

        return states_statistics(wrapper) if has_attributes else wrapper

    return decorate


def _says_statistics(arguments: Mapping[str, Any]) -> bool:
    """Whether a call says which batch statistics models get, by an option or in its evaluation."""
    evaluation = arguments.get("evaluation")
    return arguments.get("options", {}).get("statistics", getattr(evaluation, "statistics", None)) is not None


def _with_dtypes(result: Result, task: Task | None, values: tuple[Any, ...]) -> Result:
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


def arrays_of(value: Any, task: Task) -> list[Any]:
    """The arrays of a model as Flower's `get_parameters` gives them, in the order of its state dict; else []."""
    is_list = _is_sequence(value) or (isinstance(value, np.ndarray) and value.dtype == object)
    arrays = list(value) if is_list else []
    if any(isinstance(array, Model) or not isinstance(array, Tensor | np.ndarray | np.generic) for array in arrays):
        return []
    shapes, expected = (
        [tuple(array.shape) for array in arrays],
        [tuple(tensor.shape) for tensor in task.model.state_dict().values()],
    )
    return arrays if shapes == expected or any(len(shape) != 1 for shape in shapes) else []


def _loaded(value: Any, task: Task | None) -> Any:
    """State dicts by the names of the task's model in place of paths, modules and state dicts; tensors of arrays."""
    arrays = [] if task is None else arrays_of(value, task)
    if _is_sequence(value) and not arrays:
        return [_loaded(model, task) for model in value]
    if isinstance(value, Tensor):
        return value.float() if value.dtype in HALF else value
    if isinstance(value, np.ndarray) and not arrays:
        return as_tensor(value, None if task is None else task.theta.dtype)
    if task is None or not (arrays or _is_path(value) or _is_model(value)):
        return value
    from landscape.model.checkpoint import read_state, state_of  # imports this module

    return read_state(value, task) if _is_path(value) else state_of(arrays or value, task)


def as_tensor(value: Any, dtype: torch.dtype | None = None) -> Any:
    """An array of numbers as a tensor, a floating one in `dtype`; anything else as it is.

    Raises:
        ValueError: If the array holds no numbers.
    """
    if not isinstance(value, np.ndarray | np.generic):
        return value
    if value.dtype.kind not in "fiubc":
        raise ValueError(f"an array of type {value.dtype} was given; give arrays of numbers.")
    tensor = torch.tensor(value)
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _vectors(value: Any, layout: Layout | None, name: str, several: bool = False) -> Any:
    """Convert a model, or each model of a sequence, to a vector; tensors are returned as they are."""
    if isinstance(value, Tensor):
        return plain(value)
    if _is_model(value) and layout is not None:
        return layout.theta(value)
    if _is_model(value) or _is_path(value):
        recipe = "the task first, or task.layout.theta(model), or Layout.of(module).theta(model) without a task"
        raise ValueError(f"{name} is {_describe(value)}; it takes vectors (d,): give {recipe}.")
    if several and _is_sequence(value) and len(value):
        return [_vectors(model, layout, f"{name}[{index}]") for index, model in enumerate(value)]
    raise ValueError(f"{name} is {_describe(value)}; give {ACCEPTED}.")


def _describe(value: Any) -> str:
    if isinstance(value, nn.Module):
        return f"a module ({type(value).__name__})"
    if isinstance(value, Mapping):
        return "a state dict"
    if _is_path(value):
        return "a path"
    if _is_sequence(value):
        return f"a list of {len(value)}" if len(value) else "empty"
    return f"of type {type(value).__name__}"


def _require_sizes(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Refuse numbers of another type than the annotated one, and sizes that are not above 0."""
    require_options(function.__name__, function, arguments, positional=0)
    for name in POSITIVE:
        if arguments.get(name) is not None and not arguments[name] > 0:
            raise ValueError(f"{name} is {arguments[name]}; {function.__name__} takes a {name} above 0.")


def _labels(values: list[Any]) -> list[str] | None:
    """Names of models by their files, with the folder where that is needed; None if they are not all paths."""
    models = [model for value in values for model in (value if _is_sequence(value) else [value])]
    if not models or not all(_is_path(model) and Path(model).name for model in models):
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
