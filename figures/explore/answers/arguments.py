"""Which function answers an ask, and the checks of its arguments, which a page of another version may send wrongly."""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from landscape.plugins import unknown

KINDS = ("scene", "landscape", "point")
"""Kinds of asks; each is answered by the function of its name in the module of its name."""

MOST_POINTS = 101
"""Grid points per axis of a landscape."""


def accepted(kind: Any, args: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function that answers an ask, and its arguments.

    Raises:
        ValueError: If there is no such ask, or an argument is unknown, missing, or not what it takes.
    """
    if kind not in KINDS:
        raise ValueError(unknown("ask", str(kind), KINDS))
    function = getattr(importlib.import_module(f"figures.explore.answers.{kind}"), kind)
    _, *parameters = inspect.signature(function).parameters.values()
    given, names = args if isinstance(args, Mapping) else {}, [parameter.name for parameter in parameters]
    for name in given:
        if name not in names:
            raise ValueError(unknown(f"argument of the ask {kind}", str(name), names))
    missing = [one.name for one in parameters if one.default is one.empty and one.name not in given]
    if missing:
        raise ValueError(f"the ask {kind} lacks {', '.join(missing)}.")
    return function, {name: _checked(name, value) for name, value in given.items()}


def _checked(name: str, value: Any) -> Any:
    words, check = CHECKS[name]
    try:
        return check(value)
    except (TypeError, ValueError, KeyError, AttributeError) as reason:
        raise ValueError(f"{name} is {value!r}; give {words}.") from reason


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise TypeError
    return float(value)


def _points(value: Any) -> int:
    if not 2 <= _whole(value) <= MOST_POINTS:
        raise ValueError
    return int(value)


def _samples(value: Any) -> int | None:
    if value is None or value == "all":
        return None
    if _whole(value) < 1:
        raise ValueError
    return int(value)


def _spot(value: Any) -> tuple[float, float]:
    u, v = map(_number, value)
    return u, v


CHECKS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "run": ("the name of a run", _text),
    "round": ("the number of a round", _whole),
    "points": (f"a whole number from 2 to {MOST_POINTS}", _points),
    "samples": ("a whole number from 1 on, or 'all'", _samples),
    "split": ("test, train, proxy, or 'client 3'", _text),
    "quantity": ("loss, error, or 'class 3'", _text),
    "spot": ("two finite numbers: distances on the plane", _spot),
}
"""What an argument takes, in words, and its check, by name."""
