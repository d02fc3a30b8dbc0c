"""Identity of an experiment: a digest of its settings that later settings and later code leave as it is.

`schema_1.json` lists the settings of the first version by table, and is never changed. Those are part of a name with
any value, so that every run of the first version keeps its name. A later setting is part of a name only where
it differs from its default, so that a new setting renames no run. The same holds for all settings of later
methods and partitions.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from drift.config.method import Method
from drift.partitions import Partitioner
from drift.plugins import tables

if TYPE_CHECKING:
    from drift.config.experiment import Experiment

UNNAMED = (("init", "path"),)
"""Settings that are never part of a name: the digest of a checkpoint identifies it, wherever the file lies."""


def identifying(experiment: Experiment) -> dict[str, Any]:
    """The settings that identify an experiment, for JSON."""
    return _settings(experiment, experiment.resolved(), "experiment")


def _settings(model: BaseModel, content: dict[str, Any], table: str) -> dict[str, Any]:
    """The identifying settings of a table.

    Args:
        model: The table.
        content: Its content as recorded.
        table: Name of the table, "experiment", "task", ...
    """
    first = _first_version(model, table)
    result = {}
    for name, value in content.items():
        if (table, name) in UNNAMED:
            continue
        if name in type(model).model_fields:
            inner, default = getattr(model, name), type(model).model_fields[name].get_default(call_default_factory=True)
            if name not in first and inner == default:
                continue
            if isinstance(inner, BaseModel):
                value = _settings(inner, value, "base" if isinstance(model, Method) else name)
        result[name] = value
    return result


def _first_version(model: BaseModel, table: str) -> list[str]:
    """Names of the settings of the table in the first version; none for a later table."""
    schema = _schema()
    if isinstance(model, Method | Partitioner):
        kind = "methods" if isinstance(model, Method) else "partitions"
        plugin = tables.recorded(model)
        if kind == "methods" and table == "base" and plugin in schema["bases"]:
            kind = "bases"
        return list(schema[kind].get(plugin, ()))
    return list(schema[table])


@cache
def _schema() -> dict[str, Any]:
    """Settings by table; `bases` lists wrapped methods whose settings differ from `methods`."""
    return json.loads(resources.files("drift.config").joinpath("schema_1.json").read_text(encoding="utf-8"))
