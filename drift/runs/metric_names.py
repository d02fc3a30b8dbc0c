"""Recorded numbers under their usual names: accuracy for a number that was recorded as test_acc."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from landscape.plugins import unknown

if TYPE_CHECKING:
    from drift.runs.run import Run

Value = TypeVar("Value")

STATED = "FEDSCAPE_METRICS"
"""Environment variable with USUAL=RECORDED names of numbers, joined by commas; workers inherit it."""


def state(text: str) -> None:
    """Let a number stand for a usual one in all runs, in this process and in those that it starts.

    Args:
        text: USUAL=RECORDED, such as accuracy=test_acc.

    Raises:
        ValueError: If it is none.
    """
    usual, equals, value = text.partition("=")
    if not usual or not equals or not value or "," in text or "=" in value:
        raise ValueError(f"cannot read metrics.{text}; write --set metrics.accuracy=NAME, with a recorded name.")
    os.environ[STATED] = ",".join(f"{name}={other}" for name, other in {**stated(), usual: value}.items())


def stated() -> dict[str, str]:
    """Recorded names of numbers by usual name, as the environment states them."""
    pairs = [text.partition("=") for text in os.environ.get(STATED, "").split(",")]
    return {usual: name for usual, equals, name in pairs if equals}


def recorded(about: Mapping[str, Any]) -> dict[str, str]:
    """Recorded names of numbers by usual name, as the description of a run has them."""
    names = about.get("told", {}).get("metrics", {})
    return {str(usual): str(name) for usual, name in names.items()} if isinstance(names, dict) else {}


def under_usual(numbers: Mapping[str, Value], names: Mapping[str, str]) -> dict[str, Value]:
    """Numbers by name, under their usual names too."""
    return {**numbers, **{usual: numbers[name] for usual, name in names.items() if name in numbers}}


def require_stated(run: Run) -> None:
    """Refuse a run with neither the number that the environment states for a usual one, nor the usual one.

    Raises:
        LookupError: With the nearest recorded name; a run without any number is accepted.
    """
    if names := stated():
        numbers = run.number_names()
        missing = [name for usual, name in names.items() if usual not in numbers]
        require_recorded(run.name, missing if numbers else [], numbers)


def require_recorded(run: str, names: Iterable[str], numbers: Collection[str]) -> None:
    """Refuse names of numbers that a run did not record.

    Raises:
        LookupError: With the nearest recorded name.
    """
    for name in names:
        if name not in numbers:
            raise LookupError(f"run {run}: {unknown('number', name, sorted(numbers))}")
