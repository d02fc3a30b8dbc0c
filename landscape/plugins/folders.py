"""Plug-in folders: one file is one plug-in, and the file name is its public name."""

import ast
import importlib
import os
import pkgutil
import re
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from landscape.plugins import outside
from landscape.plugins.unknown_names import require_known, unknown

T = TypeVar("T")


def names(package: str) -> list[str]:
    """Public names of the plug-ins in a package, sorted; imports none of them."""
    return list(_listed(tuple((folder, _entries(folder)) for folder in importlib.import_module(package).__path__)))


def _entries(folder: str) -> tuple[str, ...]:
    """Entries of a folder of a package; none if it is not a folder, as inside an archive."""
    try:
        return _listing(folder, os.stat(folder).st_mtime_ns)
    except OSError:
        return ()


@lru_cache(maxsize=64)
def _listing(folder: str, changed: int) -> tuple[str, ...]:
    """Entries of a folder, whose time is that of its last added or removed entry."""
    return tuple(os.listdir(folder))


@lru_cache(maxsize=64)
def _listed(folders: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[str, ...]:
    """Names of the plug-ins in folders, read again when a folder is added or its entries change."""
    modules = pkgutil.iter_modules([folder for folder, _ in folders])
    return tuple(sorted(module.name for module in modules if not module.name.startswith("_")))


def load(package: str, name: str, kind: str) -> ModuleType:
    """The plug-in module called `name`; dashes and underscores are the same.

    Raises:
        ValueError: If there is none; lists what there is and the nearest match.
    """
    return importlib.import_module(f"{package}.{require(package, name, kind)}")


def recorded_name(package: str, name: str, kind: str) -> str:
    """The name by which a run records a plug-in; nothing is imported.

    Built-in names are unchanged; FILE.py:NAME gets the whole path of the file, an entry point becomes module:NAME.

    Raises:
        ValueError: If there is none; lists what there is and the nearest match.
    """
    if outside.is_outside(name):
        return outside.absolute_name(name)
    offered = outside.entry_points(package) if name.replace("-", "_") not in names(package) else {}
    if name in offered:
        return offered[name]
    require(package, name, kind)
    return name


def require(package: str, name: str, kind: str) -> str:
    """File name, without its ending, of the plug-in called `name`; nothing is imported.

    Raises:
        ValueError: If there is none; lists what there is and the nearest match.
    """
    available = names(package)
    plain = name.replace("-", "_")
    if plain not in available:
        folder = package.replace(".", "/")
        message = unknown(kind, name, [*available, *outside.entry_points(package)])
        raise ValueError(f"{message} A new one is one file in {folder}/.")
    return plain


def describe(package: str, name: str) -> str:
    """First docstring line of the plug-in called `name`, without its source; nothing is imported.

    Raises:
        ValueError: If there is none of that name.
    """
    return (ast.get_docstring(_parsed(package, name)) or "").partition("\n")[0].partition(" Source:")[0]


def source(package: str, name: str) -> str:
    """What follows "Source:" in the docstring of the plug-in called `name` or of its class; nothing is imported.

    Returns:
        One line; empty where there is no source.

    Raises:
        ValueError: If there is none of that name.
    """
    return paragraph(package, name, "Source:")


def paragraph(package: str, name: str, marker: str) -> str:
    """What follows a marker in the docstring of the plug-in called `name` or of its class, up to the next empty line.

    Returns:
        One line; empty where the marker is missing.

    Raises:
        ValueError: If there is none of that name.
    """
    module = _parsed(package, name)
    holders: list[ast.Module | ast.ClassDef] = [module]
    for holder in holders + [node for node in module.body if isinstance(node, ast.ClassDef)]:
        _, marked, rest = (ast.get_docstring(holder) or "").partition(marker)
        if marked:
            return " ".join(rest.partition("\n\n")[0].split())
    return ""


def constant(package: str, name: str, attribute: str) -> Any:
    """The value that a class of the plug-in called `name` states for an attribute; nothing is imported.

    Returns:
        None where the attribute is absent.

    Raises:
        ValueError: If there is no plug-in of that name, or the value is an expression.
    """
    for holder in _parsed(package, name).body:
        for node in holder.body if isinstance(holder, ast.ClassDef) else ():
            if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == attribute and node.value:
                return ast.literal_eval(node.value)
    return None


def sentence(text: str) -> str:
    """First sentence of a text."""
    return re.split(r"(?<!App)(?<!Figs)(?<!Fig)(?<!al)\. +(?=[A-Z0-9])", text, maxsplit=1)[0].rstrip(".") + "."


def _parsed(package: str, name: str) -> ast.Module:
    plain, available = name.replace("-", "_"), names(package)
    require_known("plug-in", plain, available)
    folders = [Path(folder) for folder in importlib.import_module(package).__path__]  # a user may have added one
    paths = [folder / name for folder in folders for name in (f"{plain}.py", f"{plain}/__init__.py")]
    written = next(path for path in paths if path.exists())
    return _tree(written, written.stat().st_mtime_ns)


@lru_cache(maxsize=512)
def _tree(written: Path, changed: int) -> ast.Module:
    return ast.parse(written.read_text(encoding="utf-8"))


def single_class(module: ModuleType, base: type[T]) -> type[T]:
    """The one class derived from `base` that a plug-in file defines.

    Raises:
        LookupError: If the file defines none or several.
    """
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__
    ]
    if len(classes) != 1:
        raise LookupError(
            f"{module.__name__} defines {len(classes)} classes derived from {base.__name__}; it needs one."
        )
    return classes[0]


def require_derived(value: Any, base: type[T], name: str) -> type[T]:
    """A class from outside the package, which must be derived from `base`.

    Raises:
        ValueError: If it is none.
    """
    if not isinstance(value, type) or not issubclass(value, base):
        required = f"{base.__module__}.{base.__name__}"
        raise ValueError(f"{name} is {type(value).__name__}, not a class derived from {required}.")
    return value
