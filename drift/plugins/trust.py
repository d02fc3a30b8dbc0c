"""Which code from elsewhere may be run: what the user names, nothing that a run or a file of settings names."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from drift.plugins import tables
from landscape import outside, plugins

TRUSTED = "FEDSCAPE_TRUST"
"""Environment variable with the code that may be run, MODULE:NAME or FILE.py:NAME, joined by commas; workers inherit
it."""


def allow(name: str) -> None:
    """Let this process, and processes that it starts, run code of somebody's own.

    Raises:
        ValueError: If the name is neither MODULE:FUNCTION nor FILE.py:CLASS.
    """
    module, _, function = name.rpartition(":")
    if not module or not function or "," in name or (":" in module and not module.endswith(".py")):
        raise ValueError(f"cannot trust {name!r}; name the code as MODULE:FUNCTION, as in mine:net, or FILE.py:CLASS.")
    if outside.absolute_name(name) not in _allowed():
        os.environ[TRUSTED] = ",".join([*_allowed(), outside.absolute_name(name)])


def allow_own(settings: Any) -> None:
    """Let code be run that the caller names, as a text or anywhere in a table of settings; a plain name needs none."""
    for name in names_in(settings):
        if "<" not in name:  # a class in a session or a function, which nothing would find
            allow(name)


def allow_setting(key: str, value: Any) -> None:
    """Let code be run that the caller names by a setting such as `method` or `clients.partition.name`."""
    package = next((home for part, home in _HOMES.items() if part in key.split(".")), None)
    if package is None or "_options" in key:
        return
    value = tables.dump(value) if isinstance(value, BaseModel) else value
    if (
        isinstance(value, str)
        and not outside.is_outside(value)
        and value.replace("-", "_") not in plugins.names(package)
    ):
        value = outside.entry_points(package).get(value, value)
    allow_own({key.rpartition(".")[2]: value})


def allow_figure(name: str) -> None:
    """Let a figure be drawn by code that the caller names: FILE.py:NAME, module:NAME or an entry point."""
    allow_own(outside.entry_points("figures.gallery").get(name, name))


def require_trusted(name: str, who: str = "") -> str:
    """The name by which code is found, refused where the user has not named it.

    A run or an experiment's file may come from anywhere, and importing a module runs it. Names without a colon are of
    this package. A file that no longer lies where it lay is the one of its name that is trusted.

    Args:
        who: Who names it, such as "run NAME makes its model by"; for the message.

    Raises:
        ValueError: If it is not trusted; says how to trust it.
    """
    if not outside.is_outside(name):
        return name
    found = located(name)
    if found in _allowed():
        return found
    raise ValueError(
        f"{f'{who} ' if who else ''}{name}, code that is no part of fedscape and would be run. If you trust it, "
        f"add --trust {name} (in Python: drift.open(folder, trust={name!r})), or set {TRUSTED}={name}."
    )


def located(name: str) -> str:
    """The name by which code is found: where the file no longer lies, the last trusted one called like it."""
    written = outside.absolute_name(name)
    if not outside.is_outside(name) or Path(written.rpartition(":")[0]).exists():
        return written if outside.is_outside(name) else name
    alike = [one for one in _allowed() if outside.portable(one) == outside.portable(written)]
    return next((one for one in reversed(alike) if Path(one.rpartition(":")[0]).exists()), written)


def load(package: str, name: str, kind: str) -> Any:
    """The code that a name means, where it is trusted; None where the name is of this package.

    Raises:
        LookupError: If it is not there.
        ValueError: If it is not trusted or fails.
    """
    recorded = plugins.recorded_name(package, name, kind)
    if not outside.is_outside(recorded):
        return None
    found = require_trusted(recorded, f"{kind} is")
    try:
        return outside.load(found)
    except (ValueError, LookupError):
        raise
    except Exception as reason:  # whatever somebody's code raises: it cannot be used, and other runs can
        said = f"{type(reason).__name__}: {' '.join(str(reason).split())}"
        raise ValueError(f"{kind} {name} cannot be loaded ({said}).") from reason


def names_in(settings: Any) -> Iterator[str]:
    """Names of code from outside in a text, or in a table of settings: those of plug-ins, of dataset and of model."""
    if isinstance(settings, str):
        if outside.is_outside(settings.strip(":")):
            yield outside.absolute_name(settings)
    elif isinstance(settings, Mapping):
        for key, value in settings.items():
            if key in _NAMING or (isinstance(value, Mapping) and not key.endswith("_options")):
                yield from names_in(value)


_NAMING = ("name", "method", "base", "partition", "dataset", "model")
"""Settings that name a plug-in."""

_HOMES = {
    "method": "drift.methods",
    "partition": "drift.partitions",
    "dataset": "landscape.datasets",
    "model": "landscape.models",
}
"""Packages of built-in plug-ins, by the setting that names one."""


def sources(settings: Mapping[str, Any]) -> dict[str, str]:
    """Digests of the files that hold the code from outside in a table of trusted settings, by name without folder."""
    return {outside.portable(name): outside.digest(require_trusted(name)) for name in names_in(settings)}


def changed(recorded: Mapping[str, str], names: Iterator[str] | list[str]) -> list[str]:
    """Which of the names have another source than was recorded."""
    known = {name: recorded.get(outside.portable(name)) for name in names}
    return [name for name, digest in known.items() if digest and digest != outside.digest(require_trusted(name))]


def tell_changed(recorded: Mapping[str, str], names: Iterator[str] | list[str], run: str) -> None:
    """Say in one line that code from outside is not what a run was trained by."""
    for name in changed(recorded, names):
        warnings.warn(f"{name} has changed since run {run} was begun with it.", stacklevel=3)


def _allowed() -> list[str]:
    return [outside.absolute_name(name) for name in os.environ.get(TRUSTED, "").split(",") if name]
