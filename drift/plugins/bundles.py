"""Bundles: named sets of options of a method, as a paper states them or as released code has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bundle:
    """Options of a method that a published source states; all others keep their defaults.

    Args:
        source: The paper or code.
        options: Options by name.
        settings: Settings outside the method to set as well, such as "local.momentum=0.0".
        lacks: Parts of the source that are not available here.
    """

    source: str
    options: Mapping[str, Any]
    settings: str = ""
    lacks: str = ""


def with_bundle(method: str, bundles: Mapping[str, Bundle], values: Any) -> Any:
    """Options of the bundle that `like` names, overridden by the other options.

    Raises:
        ValueError: If the method has no such bundle; the message lists its bundles.
    """
    if not isinstance(values, dict) or values.get("like") is None:
        return values
    return {**bundle(method, bundles, values["like"]).options, **values}


def bundle(method: str, bundles: Mapping[str, Bundle], name: Any) -> Bundle:
    """The bundle of a name.

    Raises:
        ValueError: If the method has none of that name; the message lists its bundles.
    """
    if name not in bundles:
        available = ", ".join(bundles) or "none"
        raise ValueError(f"like is {name!r}; bundles of {method}: {available}. Leave method.like out for its defaults.")
    return bundles[name]


def suffix(method: Any) -> str:
    """Suffix of a label: -paper or -code, with _changed if an option differs from the bundle; "" without bundle."""
    if method.like is None:
        return ""
    options = bundle(method.name(), method.bundles, method.like).options
    changed = any(getattr(method, option) != value for option, value in options.items())
    return f"-{method.like}_changed" if changed else f"-{method.like}"
