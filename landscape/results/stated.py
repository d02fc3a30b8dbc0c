"""Batch statistics and excluded models that a result states: told where they are met, joined where it is complete."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Inputs = ParamSpec("Inputs")
Result = TypeVar("Result")

NAMES = ("statistics", "mark_statistics", "calibration")
"""Attributes: statistics of the models, of marks where they differ, and number of samples that they are computed on."""

_STATEMENTS: ContextVar[list[Mapping[str, Any]] | None] = ContextVar("statements", default=None)


def state(attrs: Mapping[str, Any]) -> None:
    """State what `attrs` has of batch statistics, excluded models and `read` (a round) to the computation around."""
    statements, names = _STATEMENTS.get(), (*NAMES, "excluded", "read")
    if statements is not None and (stated := {name: attrs[name] for name in names if name in attrs}):
        statements.append(stated)


def rounds_read() -> list[int]:
    """Rounds that the computation around has read so far, ascending."""
    return sorted({stated["read"] for stated in _STATEMENTS.get() or () if "read" in stated})


def states_statistics(function: Callable[Inputs, Result], *, statistics: bool = True) -> Callable[Inputs, Result]:
    """Decorator: a dataset gets the batch statistics, unless it states its own, and the excluded models of the call.

    Without `statistics` it gets the excluded models alone.

    A call inside another one states its result to it, and not the parts of it.
    """

    @wraps(function)
    def wrapper(*args: Inputs.args, **options: Inputs.kwargs) -> Result:
        statements: list[Mapping[str, Any]] = []
        token = _STATEMENTS.set(statements)
        try:
            result = function(*args, **options)
        finally:
            _STATEMENTS.reset(token)
        if isinstance(attrs := getattr(result, "attrs", None), dict):
            attrs.update(_joined(statements) if statistics and "statistics" not in attrs else {})
            if rounds := [text for stated in statements for text in stated.get("excluded", "").split("; ") if text]:
                attrs["excluded"] = "; ".join(dict.fromkeys(rounds))
            state(attrs)
        return result

    return wrapper


def _joined(statements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One statement of several, whose texts are joined as "own, recomputed"; numbers only where all have the same."""
    values = {name: sorted({statement[name] for statement in statements if name in statement}) for name in NAMES}
    numbers = {name: values.pop(name) for name in NAMES[2:]}
    words = {name: sorted({word for text in texts for word in text.split(", ")}) for name, texts in values.items()}
    joined: dict[str, Any] = {name: ", ".join(texts) for name, texts in words.items() if texts}
    return joined | {name: alike[0] for name, alike in numbers.items() if len(alike) == 1}
