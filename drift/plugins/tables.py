"""Plug-ins inside an experiment: tables of a name and options, built and written back."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from landscape import outside, plugins


def name(plugin: BaseModel | type[BaseModel]) -> str:
    """What people call a plug-in: the name of its file, or of its class where it is none of this package."""
    return getattr(plugin, "called", None) or outside.short(recorded(plugin))


def recorded(plugin: BaseModel | type[BaseModel]) -> str:
    """The name that `build` takes: that of a file here, else FILE.py:CLASS or module:CLASS."""
    made = plugin if isinstance(plugin, type) else type(plugin)
    if public := getattr(made, "public", ""):
        return str(public)
    package, _, file = made.__module__.rpartition(".")
    return file if package in outside.GROUPS else outside.class_reference(made)


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
    return {"name": recorded(plugin), **plugin.model_dump(mode="json")}


_PACKAGES = {
    "method": ("drift.methods", "method"),
    "method.base": ("drift.methods", "method"),
    "clients.partition": ("drift.partitions", "partition"),
    "task.dataset": ("landscape.datasets", "dataset"),
    "task.model": ("landscape.models", "model"),
}
"""Package and kind of the plug-in that a setting names."""

_ELSEWHERE = re.compile(r"given|.*[:\[{].*")
"""Values that name no file of a package: module:function, a table, the task of a recorded run."""


def require_named(text: str) -> None:
    """Refuse KEY=VALUE or KEY=VALUE,VALUE whose key names a plug-in, and a value none that there is; imports none.

    Raises:
        ValueError: With the nearest names.
    """
    key, _, values = text.partition("=")
    kind = _PACKAGES.get(key.strip().removesuffix(".name"))
    if kind is None or _ELSEWHERE.fullmatch(values.strip()):
        return
    for value in values.split(","):
        plugins.recorded_name(kind[0], value.strip().strip("'\""), kind[1])
