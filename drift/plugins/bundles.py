"""Bundles: the options of a method as a paper states them, or as released code has them, under one word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bundle:
    """Options of a method that one published source states; those that it does not state keep their defaults.

    Args:
        source: Which paper or code.
        options: What it states, by name.
        beside: Settings outside the method that go with it and are to be given too, as in "local.momentum=0.0".
        lacks: What of the source cannot be had here.
    """

    source: str
    options: Mapping[str, Any]
    beside: str = ""
    lacks: str = ""


def filled(method: str, bundles: Mapping[str, Bundle], values: Any) -> Any:
    """Options with those of the bundle that `like` names; what is given beside it wins.

    Raises:
        ValueError: If the method has no such bundle; lists those it has.
    """
    if not isinstance(values, dict) or values.get("like") is None:
        return values
    return {**bundle(method, bundles, values["like"]).options, **values}


def bundle(method: str, bundles: Mapping[str, Bundle], name: Any) -> Bundle:
    """The bundle of a name.

    Raises:
        ValueError: If the method has none of that name; lists those it has.
    """
    if name not in bundles:
        known = ", ".join(bundles) or "none"
        raise ValueError(f"like is {name!r}; bundles of {method}: {known}. Leave method.like out for its defaults.")
    return bundles[name]


def suffix(method: Any) -> str:
    """What a label gets: -paper or -code, and _changed where an option is not that of the bundle; else nothing."""
    if method.like is None:
        return ""
    options = bundle(method.name(), method.bundles, method.like).options
    changed = any(getattr(method, option) != value for option, value in options.items())
    return f"-{method.like}_changed" if changed else f"-{method.like}"
