"""Values of the words of a look, as Python or the command line give them."""

from collections.abc import Mapping, Sequence
from typing import Any

WIDTHS = {"column": 3.3, "page": 6.9, "slide": 5.2}
"""Widths in inches. Text of 8 points at 5.2 inches is 20 points where the picture fills a slide of 13.3 inches."""

Range = tuple[float | None, float | None]


def read_range(value: Any, name: str) -> Range:
    """A pair of numbers, either of which may be absent."""
    try:
        if isinstance(value, str):
            low, colon, high = value.partition(":")
            if not colon:
                raise ValueError(value)
            ends = (float(low) if low.strip() else None, float(high) if high.strip() else None)
        elif isinstance(value, slice):
            ends = (value.start, value.stop)
        else:
            first, last = value
            ends = (first, last)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}; give two ends, such as 10:50, :50 or 10:.") from None
    if None not in ends and not ends[0] < ends[1]:  # type: ignore[operator]  # both are numbers
        raise ValueError(f"{name} is {value!r}; the first end has to be below the second.")
    return ends


def read_limits(value: Any, name: str) -> dict[str, Range]:
    if isinstance(value, Mapping):
        return {str(label): read_range(ends, name) for label, ends in value.items()}
    several = isinstance(value, list | tuple) and bool(value) and all(isinstance(entry, str) for entry in value)
    limits = {}
    for entry in value if several else [value]:
        label, equals, ends = entry.rpartition("=") if isinstance(entry, str) else ("", "", entry)
        limits[label if equals else ""] = read_range(ends, name)
    return limits


def read_labels(value: Mapping[str, str] | Sequence[str], name: str) -> dict[str, str]:
    if isinstance(value, Mapping):
        return {str(key): str(text) for key, text in value.items()}
    pairs = [entry.partition("=") for entry in ([value] if isinstance(value, str) else value)]
    if wrong := [key for key, equals, _ in pairs if not equals]:
        raise ValueError(f"{name} has {wrong[0]!r}; give METHOD=TEXT, x=TEXT or y=TEXT.")
    return {key: text for key, _, text in pairs}


def read_width(value: Any, name: str) -> str | float:
    if value in WIDTHS:
        return str(value)
    try:
        inches = float(value)
    except (TypeError, ValueError):
        inches = 0.0
    if not 1.5 <= inches <= 40:
        raise ValueError(f"{name} is {value!r}; give {', '.join(WIDTHS)}, or inches from 1.5 to 40.")
    return inches
