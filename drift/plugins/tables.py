"""Plug-ins in settings: read from and written to tables of a name and options."""

import re
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from landscape import plugins
from landscape.plugins import outside


def name(plugin: BaseModel | type[BaseModel]) -> str:
    """Public name of a plug-in: of its file, or of its class for code from outside."""
    return getattr(plugin, "called", None) or outside.short(recorded(plugin))


def table_name(table: Any) -> Any:
    """The name in a table of a plug-in, or the plug-in's name itself."""
    return table.get("name") if isinstance(table, dict) else table


def recorded(plugin: BaseModel | type[BaseModel]) -> str:
    """The name that `build` accepts: of a file of this package, else FILE.py:CLASS or module:CLASS."""
    kind = plugin if isinstance(plugin, type) else type(plugin)
    if public := getattr(kind, "public", ""):
        return str(public)
    package, _, file = kind.__module__.rpartition(".")
    return file if package in outside.GROUPS else outside.class_reference(kind)


def build(value: Any, load: Callable[[str], type[BaseModel]]) -> Any:
    """The plug-in of a name or of a table `{"name": ..., options}`; other values are returned as they are.

    Args:
        value: The name or table.
        load: Returns the class of a name.

    Raises:
        ValueError: If the table has no name; a pydantic ValidationError names wrong options.
    """
    value = {"name": value} if isinstance(value, str) else value
    if not isinstance(value, dict):
        return value
    if "name" not in value:
        raise ValueError("a table without a name; give name = ... with its options.")
    return load(str(value["name"]))(**{key: option for key, option in value.items() if key != "name"})


def dump(plugin: BaseModel) -> dict[str, Any]:
    """Inverse of `build`, for JSON."""
    return {"name": recorded(plugin), **plugin.model_dump(mode="json")}


_PACKAGES = {
    "method": ("drift.methods", "method"),
    "method.base": ("drift.methods", "method"),
    "clients.partition": ("drift.partitions", "partition"),
    "task.dataset": ("landscape.datasets", "dataset"),
    "task.model": ("landscape.models", "model"),
}
"""Package and kind of the plug-in that a setting names."""

_NO_FILE_NAME = re.compile(r"given|.*[:\[{].*")
"""Values that are not the name of a file: module:function, a table, the task of a recorded run."""


def require_named(text: str) -> None:
    """Refuse KEY=VALUE or KEY=VALUE,VALUE if the key is that of a plug-in and there is none of that name.

    No plug-in is imported.

    Raises:
        ValueError: If there is none; the message has the nearest names.
    """
    key, _, values = text.partition("=")
    kind = _PACKAGES.get(key.strip().removesuffix(".name"))
    if kind is None or _NO_FILE_NAME.fullmatch(values.strip()):
        return
    for value in values.split(","):
        plugins.recorded_name(kind[0], value.strip().strip("'\""), kind[1])
