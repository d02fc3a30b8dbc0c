"""Import paths of earlier versions: modules that moved are still found, with a warning that names the new path.

The table `earlier_modules.tsv` of a package has a row (earlier path, path now) per module that moved.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import resources
from types import ModuleType
from typing import Any


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules by their earlier path; asked last, after all other finders."""

    def __init__(self) -> None:
        self.now: dict[str, str] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self) if name in self.now else None

    def exec_module(self, module: ModuleType) -> None:
        warn(module.__name__, self.now[module.__name__])
        sys.modules[module.__name__] = importlib.import_module(self.now[module.__name__])


_FINDER = _Finder()


def find_in(package: str) -> None:
    """Find the modules that moved within a package by their earlier paths, from now on."""
    lines = resources.files(package).joinpath("earlier_modules.tsv").read_text(encoding="utf-8").splitlines()
    _FINDER.now.update((earlier, now) for earlier, now in (line.split("\t") for line in lines[1:]))
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)


def moved_names(package: str, module: str) -> Callable[[str], Any]:
    """`__getattr__` of a package that replaced a module of the same name; the names of that module are in `module`."""

    def lookup(name: str) -> Any:
        if importlib.util.find_spec(f"{package}.{name}") is not None:
            raise AttributeError(name)  # a module of the package, which the import system imports next
        try:
            value = getattr(importlib.import_module(module), name)
        except AttributeError:
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
        if not name.startswith("__"):
            warn(f"{package}.{name}", f"{module}.{name}")
        return value

    return lookup


def warn(earlier: str, now: str) -> None:
    """Warn that a path is deprecated, at the line of the user's that imports it."""
    warnings.warn(f"{earlier} is now {now}; the earlier path goes with version 1.0", DeprecationWarning, stacklevel=3)
