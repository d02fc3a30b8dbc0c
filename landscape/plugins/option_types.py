"""Options of plug-ins: refused where a function has none of the name, or takes another type."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from landscape.plugins.unknown_names import require_known


def require_options(
    what: str, function: Callable[..., Any], options: Mapping[str, Any], *, positional: int = 1
) -> None:
    """Refuse options that a function does not have, or whose value is not of the annotated type.

    Without an annotation, an option whose default is a number takes numbers; true and false are none.

    Args:
        what: Owner of the options, for the message.
        function: Takes the options, unless it takes any.
        options: By name.
        positional: Number of its first parameters that are no options.

    Raises:
        ValueError: With what is accepted.
    """
    parameters = list(inspect.signature(function).parameters.values())[positional:]
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    accepted = {parameter.name: parameter for parameter in parameters if parameter.name != "partial"}
    for name, value in ((name, options[name]) for name in options if name in accepted or not takes_any):
        require_known(f"option of {what}", name, accepted)
        kinds = [_KINDS.get(word) for word in _annotation(accepted[name]).split(" | ")]
        if None not in kinds and not any(kind.accepts(value) for kind in kinds if kind):
            words = " or ".join(kind.words for kind in kinds if kind)
            raise ValueError(f"{name} is {value!r}; {what} takes {words}.")


def _annotation(parameter: inspect.Parameter) -> str:
    if parameter.annotation is not parameter.empty:
        return getattr(parameter.annotation, "__name__", str(parameter.annotation))
    return "float" if _number(parameter.default) else ""


def _number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _whole_numbers(value: Any) -> bool:
    values = value.tolist() if hasattr(value, "tolist") else value  # of an array
    return isinstance(values, list | tuple | range) and all(map(_is_integer, values))


def _finite(value: Any) -> bool:
    return _number(value) and math.isfinite(value)


class _Kind(NamedTuple):
    words: str
    accepts: Callable[[Any], bool]


_KINDS = {
    "bool": _Kind("true or false", lambda value: isinstance(value, bool)),
    "int": _Kind("a whole number", _is_integer),
    "float": _Kind("a finite number", _finite),
    "tuple[float, float]": _Kind(
        "two finite numbers, as in '[0.1,0.5]'",
        lambda ends: isinstance(ends, list | tuple) and len(ends) == 2 and all(map(_finite, ends)),
    ),
    "str": _Kind("a text", lambda value: isinstance(value, str)),
    "list[int]": _Kind("a list of whole numbers, as in '[5,11]'", _whole_numbers),
    "Sequence[int]": _Kind("a list of whole numbers, as in '[5,11]'", _whole_numbers),
    "tuple[int, int]": _Kind("two whole numbers, as in '[5,11]'", lambda ends: _whole_numbers(ends) and len(ends) == 2),
    "Sequence[str]": _Kind(
        """a list of texts, as in '["a", "b"]'""",
        lambda value: isinstance(value, list | tuple) and all(isinstance(item, str) for item in value),
    ),
    "Mapping[str, int]": _Kind(
        "whole numbers by name", lambda value: isinstance(value, Mapping) and all(map(_is_integer, value.values()))
    ),
    "None": _Kind("none", lambda value: value is None),
}
"""What an annotation accepts, in words and as a check; a union with another annotation is not checked."""
