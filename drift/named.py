"""Plug-ins inside an experiment: tables of a name and options, built and written back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel


def name(plugin: BaseModel) -> str:
    """Public name of a plug-in: the name of its file."""
    return type(plugin).__module__.rsplit(".", 1)[-1]


def build(value: Any, load: Callable[[str], type[BaseModel]]) -> Any:
    """The plug-in of a name or of a table `{"name": ..., options}`; anything else is passed on.

    Args:
        load: Gives the class of a name.

    Raises:
        ValueError: If the table has no name; a pydantic ValidationError names wrong options.
    """
    value = {"name": value} if isinstance(value, str) else value
    if not isinstance(value, dict):
        return value
    if "name" not in value:
        raise ValueError("a table without a name; give name = ... beside its options.")
    return load(str(value["name"]))(**{key: option for key, option in value.items() if key != "name"})


def dump(plugin: BaseModel) -> dict[str, Any]:
    """Inverse of `build`, fit for JSON."""
    return {"name": name(plugin), **plugin.model_dump(mode="json")}
