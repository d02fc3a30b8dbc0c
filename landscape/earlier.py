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
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules by their earlier path; asked last, after all other finders."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package = name.partition(".")[0]
        known = package in _PACKAGES and name in moved_modules(package)
        return importlib.machinery.ModuleSpec(name, self) if known else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        now = moved_modules(name.partition(".")[0])[name]
        warn(name, now)
        sys.modules[name] = importlib.import_module(now)


_FINDER = _Finder()
_PACKAGES: set[str] = set()


def find_in(package: str) -> None:
    """Find the modules that moved within a package by their earlier paths, from now on."""
    _PACKAGES.add(package)
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)


@cache
def moved_modules(package: str) -> dict[str, str]:
    """Present path of each module that moved within a package, by its earlier path; read when first needed."""
    table = Path(str(sys.modules[package].__file__)).with_name("earlier_modules.tsv")
    rows = (line.split("\t") for line in table.read_text(encoding="utf-8").splitlines()[1:])
    return dict(rows)


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
