"""Trust in code from outside: code that the user names is run, code that a run or a settings file names is not."""

import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from drift.plugins import tables
from landscape import plugins
from landscape.plugins import outside

TRUSTED = "FEDSCAPE_TRUST"
"""Environment variable with the code that may be run, MODULE:NAME or FILE.py:NAME, joined by commas; workers inherit
it."""


def allow(name: str) -> None:
    """Trust code from outside, in this process and in processes that it starts.

    Raises:
        ValueError: If the name is neither MODULE:FUNCTION nor FILE.py:CLASS.
    """
    module, _, function = name.rpartition(":")
    if not module or not function or "," in name or (":" in module and not module.endswith(".py")):
        raise ValueError(f"cannot trust {name!r}; name the code as MODULE:FUNCTION, as in mine:net, or FILE.py:CLASS.")
    if outside.absolute_name(name) not in _allowed():
        os.environ[TRUSTED] = ",".join([*_allowed(), outside.absolute_name(name)])


def allow_named(settings: Any) -> None:
    """Trust code from outside that the caller names, as a text or anywhere in a table of settings."""
    for name in names_in(settings):
        if "<" not in name:  # a class of a session or inside a function cannot be imported
            allow(name)


def allow_setting(key: str, value: Any) -> None:
    """Trust code from outside that the caller names by a setting such as `method` or `clients.partition.name`."""
    package = next((home for word, home in _HOMES.items() if word in key.split(".")), None)
    if package is None or "_options" in key:
        return
    value = tables.dump(value) if isinstance(value, BaseModel) else value
    if (
        isinstance(value, str)
        and not outside.is_outside(value)
        and value.replace("-", "_") not in plugins.names(package)
    ):
        value = outside.entry_points(package).get(value, value)
    allow_named({key.rpartition(".")[2]: value})


def allow_figure(name: str) -> None:
    """Trust the code of a figure that the caller names: FILE.py:NAME, module:NAME or an entry point."""
    allow_named(outside.entry_points("figures.gallery").get(name, name))


def require_trusted(name: str, who: str = "") -> str:
    """The name that code is loaded by, refused if the user does not trust it.

    A run or an experiment's file may come from anywhere, and importing a module runs it. Names without a colon are of
    this package. A file that was moved is replaced by the trusted file of the same name.

    Args:
        name: Name of a plug-in.
        who: Beginning of the message, such as "run NAME makes its model by".

    Raises:
        ValueError: If it is not trusted; the message explains how to trust it.
    """
    if not outside.is_outside(name):
        return name
    if is_trusted(name):
        return located(name)
    source, _, what = name.rpartition(":")
    file = "" if source.endswith(".py") else f" or --trust FILE.py:{what} with its file"
    raise ValueError(
        f"{f'{who} ' if who else ''}{name}, code that is not part of fedscape and would be run. If you trust it, "
        f"add --trust {name}{file} (in Python: drift.open(folder, trust={name!r})), or set {TRUSTED}={name}."
    )


def is_trusted(name: str) -> bool:
    """Whether code from outside may be run."""
    return located(name) in _allowed()


def located(name: str) -> str:
    """The name that code is loaded by: the last trusted file that holds it, if its own file is absent.

    The file of a module that is not trusted by its name is the trusted one of the module's name and folders.
    """
    written = outside.absolute_name(name)
    if not outside.is_outside(name):
        return name
    if Path(written.rpartition(":")[0]).is_file() or (".py:" not in written and written in _allowed()):
        return written
    return next((trusted for trusted in reversed(_allowed()) if _holds(trusted, written)), written)


def _holds(trusted: str, name: str) -> bool:
    """Whether a trusted FILE.py:NAME is that of FILE.py:NAME in another folder, or of module:NAME."""
    (file, _, function), (source, _, what) = trusted.rpartition(":"), name.rpartition(":")
    if not file.endswith(".py") or function != what or not Path(file).is_file():
        return False
    words = (Path(source).stem,) if source.endswith(".py") else tuple(source.split("."))
    return Path(file).with_suffix("").parts[-len(words) :] == words


def load(package: str, name: str, kind: str) -> Any:
    """The trusted code of a name; None if the name is of this package.

    Raises:
        LookupError: If there is no such code.
        ValueError: If it is not trusted or fails.
    """
    recorded = plugins.recorded_name(package, name, kind)
    if not outside.is_outside(recorded):
        return None
    code = require_trusted(recorded, f"{kind} is")
    try:
        return outside.load(code)
    except (ValueError, LookupError):
        raise
    except Exception as reason:  # code from outside may raise anything; other runs stay usable
        text = f"{type(reason).__name__}: {' '.join(str(reason).split())}"
        raise ValueError(f"{kind} {name} cannot be loaded ({text}).") from reason


def names_in(settings: Any) -> Iterator[str]:
    """Names of code from outside in a text or a table of settings: plug-ins, dataset and model."""
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
    """Digests of the files of all code from outside in a table of trusted settings, by name without folder."""
    return {outside.portable(name): outside.digest(require_trusted(name)) for name in names_in(settings)}


def changed(recorded: Mapping[str, str], names: Iterator[str] | list[str]) -> list[str]:
    """Names whose source differs from the recorded one."""
    digests = {name: recorded.get(outside.portable(name)) for name in names}
    return [name for name, digest in digests.items() if digest and digest != outside.digest(require_trusted(name))]


def warn_changed(recorded: Mapping[str, str], names: Iterator[str] | list[str], run: str) -> None:
    """Warn of code from outside that differs from the code that trained a run."""
    for name in changed(recorded, names):
        warnings.warn(f"{name} has changed since run {run} was started with it.", stacklevel=3)


def _allowed() -> list[str]:
    return [outside.absolute_name(name) for name in os.environ.get(TRUSTED, "").split(",") if name]
