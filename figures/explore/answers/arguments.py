"""Which function answers an ask, and the checks of its arguments, which a page of another version may send wrongly."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, Strict, StrictBool, StrictStr, TypeAdapter

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
    words, kind = CHECKS[name]
    try:
        return TypeAdapter(kind).validate_python(value)
    except (TypeError, ValueError, KeyError, AttributeError) as reason:
        raise ValueError(f"{name} is {value!r}; give {words}.") from reason


def _model(value: Any) -> str | dict[str, Any]:
    if isinstance(value, str):
        return value
    (kind, *_), allowed = value.keys(), ({"spot"}, {"weights"}, {"weights", "gamma"})
    if set(value) not in allowed:
        raise ValueError
    if kind == "spot":
        return {"spot": _checked("spot", value["spot"])}
    return {name: _checked(name, value.get(name, 1.0)) for name in ("weights", "gamma")}


Integer = Annotated[int, Strict(), Field(ge=0, le=2**62)]
Number = Annotated[float, Strict(), Field(ge=-LARGEST, le=LARGEST)]
Limit = Annotated[Annotated[Integer, Field(ge=1)] | None, BeforeValidator(lambda most: None if most == "all" else most)]


CHECKS: dict[str, tuple[str, Any]] = {
    "run": ("the name of a run", StrictStr),
    "round": ("the number of a round, 0 or more", Integer),
    "points": (f"a whole number from 2 to {MOST_POINTS}", Annotated[Integer, Field(ge=2, le=MOST_POINTS)]),
    "samples": ("a whole number from 1 on, or 'all'", Limit),
    "split": ("test, train, proxy, or 'client 3'", StrictStr),
    "quantity": ("loss, error, or 'class 3'", StrictStr),
    "weights": ("numbers by the id of a client, of at most 1e30", dict[int, Number]),
    "gamma": ("a number of at most 1e30", Number),
    "rule": ("equal, own, fedlaw, or 'without 9'", StrictStr),
    "model": (
        "end, start, aggregate, 'client 3', {spot: [u, v]} or {weights: {id: w}, gamma: 1}",
        Annotated[Any, PlainValidator(_model)],
    ),
    "against": ("the id of a client, or null", Integer | None),
    **dict.fromkeys(("truth", "predicted"), ("the number of a class, or null", Integer | None)),
    "mode": ("wrong, differs or all", StrictStr),
    "limit": (f"a whole number from 0 to {MOST_CARDS}", Annotated[Integer, Field(le=MOST_CARDS)]),
    "runs": ("a list of names of runs", list[StrictStr]),
    "name": ("the name of a number", StrictStr),
    "figure": ("the name of a figure", StrictStr),
    "stored": ("true or false", StrictBool),
    "options": ("options by name", dict[StrictStr, Any] | None),
    "format": ("svg, pdf, png or csv", StrictStr),
    "job": ("the number of a job", Integer),
    "address": ("an address of the stage as text", StrictStr),
    "what_if": ("fields by name, or null", dict[StrictStr, Any] | None),
    "spot": ("two numbers, distances on the plane, of at most 1e30", tuple[Number, Number]),
}
"""What an argument takes, in words and as a type, by name."""
