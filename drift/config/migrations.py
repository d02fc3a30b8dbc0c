"""Settings of runs that earlier versions wrote, in the words of this one.

A setting that is renamed or changes its meaning raises `SCHEMA` by one and adds a step to `STEPS`; a setting that is
only added has a default and needs neither (`drift.config.identity` keeps the names of runs). Files of a run are never
rewritten: they are migrated where they are read. `run.json` states its schema where that is not the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

SCHEMA = 1
"""Schema of the settings that this version writes."""

STEPS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Settings of a schema -> settings of the next one; a step changes no argument."""


def migrate(about: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a run in the present schema.

    Args:
        about: Content of `run.json`: the settings under "experiment", and their "schema", else the first.

    Raises:
        ValueError: If the schema is that of a later version.
    """
    stated = about.get("schema", 1)
    if not isinstance(stated, int) or not 1 <= stated <= SCHEMA:
        raise ValueError(
            f"the settings have schema {stated!r}, and this version of fedscape reads 1 to {SCHEMA}; open the run with "
            "the version that wrote it, or a later one."
        )
    content = dict(about.get("experiment", {}))
    for schema in range(stated, SCHEMA):
        content = STEPS[schema](content)
    return content


def schema_entry() -> dict[str, int]:
    """What `run.json` states of its schema: nothing while it is the first one."""
    return {"schema": SCHEMA} if SCHEMA > 1 else {}
