"""Words for the content of a file, in messages."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from landscape.model.inert_pickle import Inert
from landscape.model.state_dict_search import QUANTISED, is_quantised
from landscape.model.torch_files import Stored

MAX_KEYS = 8
"""Keys in a message."""


def described(content: Any) -> str:
    """What content without state dicts is."""
    if any(map(is_quantised, _values_in(content))):
        return QUANTISED
    if any(isinstance(value, Mapping) and {"state", "param_groups"} <= set(value) for value in _values_in(content)):
        return "the state of an optimiser"
    if isinstance(content, Tensor | Stored):
        return f"one tensor of shape {tuple(content.shape)}"
    if isinstance(content, Inert):
        return f"an object of {content.name}" if "." in content.name else "an object"
    if not isinstance(content, Mapping):
        return f"a {type(content).__name__}"
    keys = [short_key(key) for key in content]
    more = f" and {len(keys) - MAX_KEYS} more" if len(keys) > MAX_KEYS else ""
    return f"a table of {', '.join(keys[:MAX_KEYS])}{more}" if keys else "an empty table"


def short_key(key: Any) -> str:
    """A key as it is chosen in brackets at the end of a path."""
    return " ".join(str(key).split())[:60].translate(str.maketrans("[]/", "()|"))


def one_line(reason: Exception) -> str:
    """The first 200 characters of an error's message, on one line."""
    return " ".join(str(reason).split())[:200] or type(reason).__name__


def _values_in(content: Any) -> Iterator[Any]:
    """Everything in the content of a file, each container once."""
    left, seen = [content], set[int]()
    while left:
        value = left.pop()
        yield value
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Inert):
            left += [value.arguments, value.state, value.items]
        elif isinstance(value, Mapping | list | tuple):
            left += value.values() if isinstance(value, Mapping) else value
