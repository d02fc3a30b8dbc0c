"""Methods that were corrected after a run was trained by them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drift.config.method import Method
from landscape.plugins import outside


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
