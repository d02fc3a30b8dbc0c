"""Options of plug-ins: refused where a function has none of the name, or takes another type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from landscape.plugins.unknown_names import unknown


def require_options(what: str, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options that a function does not have, or whose value is not of the annotated type.

    Args:
        what: Owner of the options, for the message.
        function: Its first parameter is no option.
        options: By name.

    Raises:
        ValueError: With what is accepted.
    """
    accepted = dict(list(inspect.signature(function).parameters.items())[1:])
    for name, value in options.items():
        if name not in accepted:
            raise ValueError(unknown(f"option of {what}", name, [option for option in accepted if option != "partial"]))
        annotation = str(accepted[name].annotation)
        kinds = [_ACCEPTED.get(part) for part in annotation.split(" | ")]
        if not any(kind is None or kind(value) for kind in kinds):
            raise ValueError(f"option {name} of {what} is {value!r}; it takes {annotation}.")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _numbers(value: Any) -> bool:
    return isinstance(value, list | tuple | range) and all(map(_whole, value))


_ACCEPTED: dict[str, Callable[[Any], bool]] = {
    "int": _whole,
    "float": lambda value: _whole(value) or isinstance(value, float),
    "str": lambda value: isinstance(value, str),
    "list[int]": _numbers,
    "Sequence[int]": _numbers,
    "tuple[int, int]": lambda value: _numbers(value) and len(value) == 2,
    "Sequence[str]": lambda value: isinstance(value, list | tuple) and all(isinstance(item, str) for item in value),
    "None": lambda value: value is None,
}
"""Whether a value matches an annotation; other annotations are not checked."""
