"""Batch statistics that a result states: told where models are evaluated, and joined where a result is complete."""

from __future__ import annotations

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
    """State the batch statistics of models to the computation that evaluates them; nothing where `attrs` has none."""
    statements = _STATEMENTS.get()
    if statements is not None and "statistics" in attrs:
        statements.append({name: attrs[name] for name in NAMES if name in attrs})


def states_statistics(function: Callable[Inputs, Result]) -> Callable[Inputs, Result]:
    """Decorator: a dataset that does not state its batch statistics gets those that were stated during the call.

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
            if statements and "statistics" not in attrs:
                attrs.update(_joined(statements))
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
