"""Runs of earlier versions: their settings in the words of this one, and methods that were corrected since.

A setting that is renamed or changes its meaning raises `SCHEMA` by one and adds a step to `STEPS`; a setting that is
only added has a default and needs neither (`drift.config.identity` keeps the names of runs). Files of a run are never
rewritten: they are migrated where they are read. `run.json` states its schema where that is not the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from drift.config.method import Method
from landscape import outside

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


def corrected_since(about: Mapping[str, Any], method: Method) -> tuple[str, ...]:
    """Corrections of a run's method after the run was started, one clause per correction.

    Args:
        about: Content of run.json.
        method: The method as it is now.
    """
    if "hash" not in about or "run" in about:  # recorded or imported: trained by other code
        return ()
    return method.corrections[int(about.get("corrections", 0)) :]


def from_outside(about: Mapping[str, Any]) -> bool:
    """Whether the method of a run, or the method that it wraps, is from outside this package or missing.

    Such a run is opened without its code.
    """
    method = about.get("experiment", {}).get("method")
    names = []
    while isinstance(method, Mapping):
        names.append(str(method.get("name", ":")))
        method = method.get("base")
    return not names or any(map(outside.is_outside, names))


def require_corrected(about: Mapping[str, Any], method: Method, folder: Path) -> None:
    """Raise ValueError with the corrections if a run of a method that was corrected later is resumed or reused."""
    if since := corrected_since(about, method):
        raise ValueError(
            f"{folder} was trained before {method.name()} was corrected ({'; '.join(since)}). Train into another "
            "folder (--runs DIR), or delete this one and train again."
        )
