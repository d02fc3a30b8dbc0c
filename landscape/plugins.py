"""Plug-in folders: one file is one plug-in, and the file name is its public name."""

from __future__ import annotations

import ast
import difflib
import importlib
import pkgutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")


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


def describe(package: str, name: str) -> str:
    """First docstring line of the plug-in called `name`, read from its source; nothing is imported.

    Raises:
        ValueError: If there is none of that name.
    """
    plain, known = name.replace("-", "_"), names(package)
    if plain not in known:
        raise ValueError(unknown("plug-in", name, known))
    (folder,) = importlib.import_module(package).__path__
    file = Path(folder) / f"{plain}.py"
    source = file if file.exists() else Path(folder) / plain / "__init__.py"
    docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not known, with the nearest known one where there is a near one."""
    known = list(known)
    near = difflib.get_close_matches(name.replace("-", "_"), known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"no {kind} named {name!r}.{hint} Known: {', '.join(known)}."


def defined(module: ModuleType, base: type[T]) -> type[T]:
    """The one class derived from `base` that a plug-in file defines.

    Raises:
        LookupError: If the file defines none or several.
    """
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise LookupError(f"{module.__name__} defines {len(found)} classes derived from {base.__name__}; it needs one.")
    return found[0]


def lazy(package: str, public: Mapping[str, str]) -> None:
    """Give a package public names that are imported from their modules when they are first asked for.

    A name stays the public object where its module has the same name, as in `drift.coherence`.

    Args:
        package: Name of the package, imported already.
        public: Module of every public name.
    """

    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name not in public:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            return getattr(importlib.import_module(public[name]), name)

        def __setattr__(self, name: str, value: Any) -> None:  # the import system binds submodules here
            if isinstance(value, ModuleType) and public.get(name) == value.__name__:
                value = getattr(value, name)
            super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *public})

    sys.modules[package].__class__ = Lazy
