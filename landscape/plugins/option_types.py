"""Options of plug-ins: refused where a function has none of the name, or takes another type."""

import inspect
import math
import numbers
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, get_args, get_origin

from landscape.plugins.unknown_names import require_known


def require_options(
    what: str, function: Callable[..., Any], options: Mapping[str, Any], *, positional: int = 1
) -> dict[str, Any]:
    """Options as a function takes them, arrays as lists; others, or of another type than the annotated, are refused.

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
    names, taken = getattr(inspect.unwrap(function), "__globals__", {}), dict(options)
    for name, value in ((name, options[name]) for name in options if name in accepted or not takes_any):
        require_known(f"option of {what}", name, accepted)
        kinds = [kind for word in _annotation(accepted[name]).split(" | ") for kind in _kinds(word, names)]
        if None not in kinds:
            taken[name] = value.tolist() if hasattr(value, "tolist") else value
            if not any(kind.accepts(taken[name]) for kind in kinds if kind):
                words = " or ".join(kind.words for kind in kinds if kind)
                raise ValueError(f"{name} is {value!r}; {what} takes {words}.")
    return taken


def _annotation(parameter: inspect.Parameter) -> str:
    """The annotation as text, without the modules of its types; that of a number without one is "float"."""
    if (annotation := parameter.annotation) is not parameter.empty:
        text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
        return re.sub(r"\w+\.", "", text).replace("list[", "Sequence[")
    return "float" if _number(parameter.default) else ""


def _number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    """Whether a value is a whole number, NumPy's too, and no truth value."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _finite(value: Any) -> bool:
    return _number(value) and math.isfinite(value)


class _Kind(NamedTuple):
    words: str
    accepts: Callable[[Any], bool]


def _kinds(word: str, names: Mapping[str, Any]) -> list[_Kind | None]:
    """What a type accepts, or each part of an alias of literals in `names`; None where it is not checked."""
    alias = names.get(word.removeprefix("Sequence[").removesuffix("]"))
    texts = [text for member in (alias, *get_args(alias)) if get_origin(member) is Literal for text in get_args(member)]
    if not (texts and isinstance(texts[0], str)):
        return [_KINDS.get(word)]

    def known(value: Any) -> bool:
        return _is_text(value) and value in texts

    if word.startswith("Sequence["):
        return [_listed(f"a list of {', '.join(texts)}", f'["{texts[0]}"]', known)]
    others = {getattr(member, "__name__", "") for member in get_args(alias) if member not in texts} - {"Literal"}
    return [_Kind(f"one of {', '.join(texts)}", known), *map(_KINDS.get, others)]


def _listed(words: str, example: str, accepts: Callable[[Any], bool], length: int | None = None) -> _Kind:
    def accepted(values: Any) -> bool:
        return isinstance(values, list | tuple | range) and all(map(accepts, values)) and length in (None, len(values))

    return _Kind(f"{words}, as in '{example}'", accepted)


_KINDS = {
    "bool": _Kind("true or false", lambda value: isinstance(value, bool)),
    "int": _Kind("a whole number", is_integer),
    "float": _Kind("a finite number", _finite),
    "str": _Kind("a text", _is_text),
    "Sequence[int]": _listed("a list of whole numbers", "[5,11]", is_integer),
    "Sequence[float]": _listed("a list of finite numbers", "[0.5,1]", _finite),
    "Sequence[str]": _listed("a list of texts", '["a", "b"]', _is_text),
    "tuple[int, int]": _listed("two whole numbers", "[5,11]", is_integer, 2),
    "tuple[float, float]": _listed("two finite numbers", "[0.1,0.5]", _finite, 2),
    "Mapping[str, int]": _Kind(
        "whole numbers by name", lambda value: isinstance(value, Mapping) and all(map(is_integer, value.values()))
    ),
    "None": _Kind("none", lambda value: value is None),
}
"""What an annotation accepts, in words and as a check; a union with another annotation is not checked."""
