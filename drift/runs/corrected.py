"""Runs of a method that was corrected since: never continued, and said to be so when opened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drift.config.method import Method
from landscape import outside


def corrected_since(about: Mapping[str, Any], method: Method) -> tuple[str, ...]:
    """What was corrected in a run's method after the run was begun, one clause per correction.

    Args:
        about: Content of run.json.
        method: The method as it is now.
    """
    if "hash" not in about or "run" in about:  # recorded or imported: trained by other code
        return ()
    return method.corrections[int(about.get("corrections", 0)) :]


def from_outside(about: Mapping[str, Any]) -> bool:
    """Whether a run's method, or the one that it wraps, is no method of this package, or the run names none.

    Opening such a run must not need its code: its records are read without.
    """
    method = about.get("experiment", {}).get("method")
    names = []
    while isinstance(method, Mapping):
        names.append(str(method.get("name", ":")))
        method = method.get("base")
    return not names or any(map(outside.is_outside, names))


def require_corrected(about: Mapping[str, Any], method: Method, folder: Path) -> None:
    """Refuse to go on with a run of a method that was corrected since, or to take it for a run of today's.

    Raises:
        ValueError: If it is one; says what was wrong.
    """
    if since := corrected_since(about, method):
        raise ValueError(
            f"{folder} was trained before {method.name()} was corrected ({'; '.join(since)}). Train into another "
            "folder (--runs DIR), or delete this one and train again."
        )
