"""Which function answers an ask, and the checks of its arguments, which a page of another version may send wrongly."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from landscape.plugins import unknown

KINDS = (
    *("scene", "landscape", "point", "weights", "best", "path", "samples", "series", "numbers", "diagnosis"),
    *("figures", "draw", "charts", "publish", "cancel"),
)
"""Kinds of asks; each is answered by the function of its name in the module of its name."""

LARGEST = 1e30
"""Largest absolute number of a page; sums of larger ones and their models overflow."""

MOST_POINTS, MOST_CARDS = 101, 500
"""Grid points per axis of a landscape, and samples that are shown, at most."""


def accepted(kind: Any, args: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function that answers an ask, and its arguments.

    Raises:
        ValueError: If there is no such ask, or an argument is unknown, missing, or not what it takes.
    """
    if kind not in KINDS:
        raise ValueError(unknown("ask", str(kind), KINDS))
    function = getattr(importlib.import_module(f"figures.explore.answers.{kind}"), kind)
    _, *parameters = inspect.signature(function).parameters.values()
    stated, names = args if isinstance(args, Mapping) else {}, [parameter.name for parameter in parameters]
    for name in stated:
        if name not in names:
            raise ValueError(unknown(f"argument of the ask {kind}", str(name), names))
    missing = [field.name for field in parameters if field.default is field.empty and field.name not in stated]
    if missing:
        raise ValueError(f"the ask {kind} lacks {', '.join(missing)}.")
    return function, {name: _checked(name, value) for name, value in stated.items()}


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


def _integer(least: int = 0, most: int = 2**62) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError
        return int(value)

    return check


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= LARGEST:
        raise TypeError
    return float(value)


def _samples(value: Any) -> int | None:
    return None if value in (None, "all") else _integer(1)(value)


def _spot(value: Any) -> tuple[float, float]:
    u, v = map(_number, value)
    return u, v


def _weights(value: Any) -> dict[int, float]:
    return {int(client): _number(weight) for client, weight in value.items()}


def _model(value: Any) -> str | dict[str, Any]:
    if isinstance(value, str):
        return value
    (kind, *_), allowed = value.keys(), ({"spot"}, {"weights"}, {"weights", "gamma"})
    if set(value) not in allowed:
        raise ValueError
    if kind == "spot":
        return {"spot": _spot(value["spot"])}
    return {"weights": _weights(value["weights"]), "gamma": _number(value.get("gamma", 1.0))}


def _integer_or_none(value: Any) -> int | None:
    return None if value is None else _integer()(value)


def _names(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise TypeError
    return [_text(name) for name in value]


def _table(value: Any) -> dict[str, Any]:
    return {_text(name): option for name, option in ({} if value is None else value).items()}


CHECKS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "run": ("the name of a run", _text),
    "round": ("the number of a round, 0 or more", _integer()),
    "points": (f"a whole number from 2 to {MOST_POINTS}", _integer(2, MOST_POINTS)),
    "samples": ("a whole number from 1 on, or 'all'", _samples),
    "split": ("test, train, proxy, or 'client 3'", _text),
    "quantity": ("loss, error, or 'class 3'", _text),
    "weights": ("numbers by the id of a client, of at most 1e30", _weights),
    "gamma": ("a number of at most 1e30", _number),
    "rule": ("equal, own, fedlaw, or 'without 9'", _text),
    "model": ("end, start, aggregate, 'client 3', {spot: [u, v]} or {weights: {id: w}, gamma: 1}", _model),
    "against": ("the id of a client, or null", _integer_or_none),
    **dict.fromkeys(("truth", "predicted"), ("the number of a class, or null", _integer_or_none)),
    "mode": ("wrong, differs or all", _text),
    "limit": (f"a whole number from 0 to {MOST_CARDS}", _integer(0, MOST_CARDS)),
    "runs": ("a list of names of runs", _names),
    "name": ("the name of a number", _text),
    "figure": ("the name of a figure", _text),
    "stored": ("true or false", {True: True, False: False}.__getitem__),
    "options": ("options by name", _table),
    "format": ("svg, pdf, png or csv", _text),
    "job": ("the number of a job", _integer()),
    "address": ("an address of the stage as text", _text),
    "what_if": ("fields by name, or null", _table),
    "spot": ("two numbers, distances on the plane, of at most 1e30", _spot),
}
"""What an argument takes, in words, and its check, by name."""
