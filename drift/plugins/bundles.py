"""Bundles: named sets of options of a method, as a paper states them or as released code has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from drift.plugins.toml_models import Entry, read_toml

FOLDER = Path(__file__).resolve().parents[1] / "methods" / "bundles"
"""One TOML file per method of the package that has bundles."""


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


class _Table(Entry):
    source: str
    settings: str = ""
    lacks: str = ""
    options: dict[str, Any] = Field({})
    absent: tuple[str, ...] = Field((), description="options that have no value there")


class _File(Entry):
    paper: _Table | None = None
    code: _Table | None = None


@cache
def shipped_bundles(method: str) -> dict[str, Bundle]:
    """The bundles of a method of the package, from its file.

    Raises:
        ValueError: If the file is wrong: which key.
    """
    bundles = {}
    for name, table in read_toml(FOLDER / f"{method}.toml", _File):
        if table is not None:
            options = {key: tuple(value) if isinstance(value, list) else value for key, value in table.options.items()}
            options |= dict.fromkeys(table.absent)
            bundles[name] = Bundle(table.source, options, table.settings, table.lacks)
    return bundles


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
