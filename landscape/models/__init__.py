"""Models by name; each file of this folder is one, and its file name is its public name.

A plug-in has a one-line docstring with its source and `build(shape, classes, **options) -> nn.Module`, whose module
has `body` (features) and `head` (the last linear layer). `_parts` holds what they share.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from landscape import plugins
from landscape.plugins import outside

if TYPE_CHECKING:
    from torch import nn

__all__ = ["build_model", "describe", "names"]


def names() -> list[str]:
    """Public names of all models, sorted."""
    return plugins.names(__name__)


def describe(name: str) -> str:
    """One line about a model, with its source; nothing is imported."""
    return plugins.describe(__name__, name)


def build_model(name: str, shape: tuple[int, ...], classes: int, *, seed: int, **options: Any) -> nn.Module:
    """A freshly initialised model; same seed, same bits, and the caller's random state stays as it is.

        net = landscape.build_model("mlp", (1, 8, 8), 10, seed=0)

    Args:
        name: File name of a plug-in, an entry point, or FILE.py:NAME or module:NAME of a factory of a user, called
            like the `build` of a plug-in.
        shape: Shape of one input, such as (1, 28, 28).
        classes: Number of outputs.
        seed: Fixes the initial values.
        options: Further arguments of the factory.

    Raises:
        ValueError: If the name or an option is unknown, or the model does not take inputs of this shape.
    """
    import torch
    from torch import nn

    if classes < 2:
        raise ValueError(f"classes is {classes}; a model takes classes >= 2.")
    build = _factory(name)
    plugins.require_options(f"model {name!r}", build, options, positional=2)
    _check_needed(build, name, options)
    _check_call(build, name, (tuple(shape), classes), options)
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        model = build(tuple(shape), classes, **options)
    if not isinstance(model, nn.Module):
        raise ValueError(f"model factory {name!r} returned {type(model).__name__}; it must return a torch.nn.Module.")
    return model


def _factory(name: str) -> Callable[..., Any]:
    recorded = plugins.recorded_name(__name__, name, "model")
    if not outside.is_outside(recorded):
        return plugins.load(__name__, name, "model").build
    factory = outside.load(recorded)
    if not callable(factory):
        raise ValueError(f"model {name!r} is a {type(factory).__name__}, not a function like build(shape, classes).")
    return factory


def _check_call(build: Callable[..., Any], name: str, positional: tuple[Any, ...], options: dict[str, Any]) -> None:
    try:
        inspect.signature(build).bind(*positional, **options)
    except TypeError as reason:
        raise ValueError(
            f"model factory {name!r} cannot be called with (shape, classes) and its options: {reason}."
        ) from reason


def _check_needed(build: Callable[..., Any], name: str, options: dict[str, Any]) -> None:
    keywords = [option for option in inspect.signature(build).parameters.values() if option.kind is option.KEYWORD_ONLY]
    needed = [option.name for option in keywords if option.default is option.empty and option.name not in options]
    if needed:
        raise ValueError(
            f"model {name!r} needs the option {needed[0]!r} (task.model_options.{needed[0]}); it accepts "
            f"{', '.join(option.name for option in keywords)}."
        )
