"""Plug-in folders: one file is one plug-in, and the file name is its public name."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable
from types import ModuleType


def names(package: str) -> list[str]:
    """Public names of the plug-ins in a package, sorted; imports none of them."""
    path = importlib.import_module(package).__path__
    return sorted(module.name for module in pkgutil.iter_modules(path) if not module.name.startswith("_"))


def load(package: str, name: str, kind: str) -> ModuleType:
    """The plug-in module called `name`; dashes and underscores are the same.

    Raises:
        ValueError: If there is none; lists what there is and the nearest match.
    """
    known = names(package)
    plain = name.replace("-", "_")
    if plain not in known:
        raise ValueError(unknown(kind, name, known) + f" A new one is one file in {package.replace('.', '/')}/.")
    return importlib.import_module(f"{package}.{plain}")


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not known, with the nearest known one where there is a near one."""
    known = list(known)
    near = difflib.get_close_matches(name.replace("-", "_"), known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"no {kind} named {name!r}.{hint} Known: {', '.join(known)}."
