"""Plug-in folders: one file is one plug-in, and the file name is its public name."""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from landscape import outside

T = TypeVar("T")


def names(package: str) -> list[str]:
    """Public names of the plug-ins in a package, sorted; imports none of them."""
    return list(_listed(tuple((folder, _entries(folder)) for folder in importlib.import_module(package).__path__)))


def _entries(folder: str) -> tuple[str, ...]:
    """Entries of a folder of a package; none if it is no folder, as inside an archive."""
    try:
        return tuple(os.listdir(folder))
    except OSError:
        return ()


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
        place = package.replace(".", "/")
        message = unknown(kind, name, [*available, *outside.entry_points(package)])
        raise ValueError(f"{message} A new one is one file in {place}/.")
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


def sentence(text: str) -> str:
    """First sentence of a text."""
    return re.split(r"(?<!App)(?<!Figs)(?<!Fig)(?<!al)\. +(?=[A-Z0-9])", text, maxsplit=1)[0].rstrip(".") + "."


def _parsed(package: str, name: str) -> ast.Module:
    plain, available = name.replace("-", "_"), names(package)
    if plain not in available:
        raise ValueError(unknown("plug-in", name, available))
    folders = [Path(folder) for folder in importlib.import_module(package).__path__]  # a user may have added one
    places = [folder / name for folder in folders for name in (f"{plain}.py", f"{plain}/__init__.py")]
    written = next(place for place in places if place.exists())
    return ast.parse(written.read_text(encoding="utf-8"))


def unknown(kind: str, name: str, known: Iterable[str], *, listed: str | None = None) -> str:
    """The error message for an unknown name: the nearest names, and all names if they are few.

    It names the command that lists all names; without such a command it lists them all.

    Args:
        kind: Kind of the name, in singular.
        listed: The command that lists every name; else that of `LISTED_BY`.
    """
    plain = {_plain(candidate): candidate for candidate in known}
    near = [plain[match] for match in difflib.get_close_matches(_plain(name), plain, n=NEAREST, cutoff=0.4)]
    likely = near if difflib.get_close_matches(_plain(name), plain, n=1) else []
    hint = f" Did you mean {likely[0]!r}?" if likely else ""
    listed = listed or LISTED_BY.get(kind)
    if not plain:
        return f"no {kind} named {name!r}; there is no {kind}."
    if len(plain) <= FEW or listed is None:
        hint_to_list = f" To list them: {listed}." if listed else ""
        return f"no {kind} named {name!r}.{hint} Known: {', '.join(plain.values())}.{hint_to_list}"
    nearest = f" Nearest: {', '.join(near)}." if near else ""
    return f"no {kind} named {name!r}.{hint}{nearest} All {len(plain)}: {listed}."


def _plain(name: str) -> str:
    """A name for comparison: dashes and underscores are the same, and so are capitals."""
    return name.replace("-", "_").strip("_").lower()


NEAREST = 5
"""Names that an error shows if there are many."""

FEW = 12
"""Names up to which an error shows all."""

LISTED_BY = {
    "analysis": "fedscape list analyses",
    "dataset": "fedscape list datasets",
    "experiment": "fedscape list experiments",
    "figure": "fedscape figures list",
    "method": "fedscape list methods",
    "model": "fedscape list models",
    "paper": "fedscape list papers",
    "partition": "fedscape list partitions",
    "run": "fedscape runs",
}
"""Commands that list every name of a kind."""


def require_options(what: str, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options that a function does not have, or whose value is not of the annotated type.

    Args:
        what: Owner of the options, for the message.
        function: Its first parameter is no option.
        options: By name.

    Raises:
        ValueError: With what is accepted.
    """
    accepted = dict(list(inspect.signature(function).parameters.items())[1:])
    for name, value in options.items():
        if name not in accepted:
            raise ValueError(unknown(f"option of {what}", name, [option for option in accepted if option != "partial"]))
        annotation = str(accepted[name].annotation)
        kinds = [_ACCEPTED.get(part) for part in annotation.split(" | ")]
        if not any(kind is None or kind(value) for kind in kinds):
            raise ValueError(f"option {name} of {what} is {value!r}; it takes {annotation}.")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _numbers(value: Any) -> bool:
    return isinstance(value, list | tuple | range) and all(map(_whole, value))


_ACCEPTED: dict[str, Callable[[Any], bool]] = {
    "int": _whole,
    "float": lambda value: _whole(value) or isinstance(value, float),
    "str": lambda value: isinstance(value, str),
    "list[int]": _numbers,
    "Sequence[int]": _numbers,
    "tuple[int, int]": lambda value: _numbers(value) and len(value) == 2,
    "Sequence[str]": lambda value: isinstance(value, list | tuple) and all(isinstance(item, str) for item in value),
    "None": lambda value: value is None,
}
"""Whether a value matches an annotation; other annotations are not checked."""


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


def lazy(package: str) -> list[str]:
    """Give a package the public names of its stub, imported from their modules at first use.

    The stub `__init__.pyi` of the package has a line `from MODULE import NAME as NAME` per name, which
    editors and type checkers read too. A name stays the public object where a module has the same name.

    Args:
        package: Name of the package, imported already.

    Returns:
        The names, sorted.
    """
    stub = ast.parse(Path(str(sys.modules[package].__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    public = {alias.name: str(node.module) for node in imports for alias in node.names}

    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name not in public:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            return getattr(importlib.import_module(public[name]), name)

        def __setattr__(self, name: str, value: Any) -> None:  # the import system binds submodules here
            if isinstance(value, ModuleType) and name in public:
                value = self.__getattr__(name)
            super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *public})

    sys.modules[package].__class__ = Lazy
    return sorted(public)
