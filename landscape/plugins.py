"""Plug-in folders: one file is one plug-in, and the file name is its public name."""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Mapping
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
    return importlib.import_module(f"{package}.{require(package, name, kind)}")


def require(package: str, name: str, kind: str) -> str:
    """File name, without its ending, of the plug-in called `name`; nothing is imported.

    Raises:
        ValueError: If there is none; lists what there is and the nearest match.
    """
    known = names(package)
    plain = name.replace("-", "_")
    if plain not in known:
        raise ValueError(unknown(kind, name, known) + f" A new one is one file in {package.replace('.', '/')}/.")
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
    module = _parsed(package, name)
    holders: list[ast.Module | ast.ClassDef] = [module]
    for holder in holders + [node for node in module.body if isinstance(node, ast.ClassDef)]:
        _, marked, rest = (ast.get_docstring(holder) or "").partition("Source:")
        if marked:
            return " ".join(rest.partition("\n\n")[0].split())
    return ""


def sentence(text: str) -> str:
    """First sentence of a text."""
    return re.split(r"(?<!App)(?<!Figs)(?<!Fig)(?<!al)\. +(?=[A-Z0-9])", text, maxsplit=1)[0].rstrip(".") + "."


def _parsed(package: str, name: str) -> ast.Module:
    plain, known = name.replace("-", "_"), names(package)
    if plain not in known:
        raise ValueError(unknown("plug-in", name, known))
    folders = [Path(folder) for folder in importlib.import_module(package).__path__]  # a user may have added one
    places = [folder / name for folder in folders for name in (f"{plain}.py", f"{plain}/__init__.py")]
    written = next(place for place in places if place.exists())
    return ast.parse(written.read_text(encoding="utf-8"))


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not known, with the nearest known one where there is a near one."""
    known = list(known)
    near = difflib.get_close_matches(name.replace("-", "_"), known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"no {kind} named {name!r}.{hint} Known: {', '.join(known)}."


def require_options(what: str, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options that a function does not have, or whose value is no number, text or list where one is expected.

    Args:
        what: Whose options they are, for the message.
        function: Its first parameter is no option.
        options: By name.

    Raises:
        ValueError: With what is accepted.
    """
    accepted = dict(list(inspect.signature(function).parameters.items())[1:])
    for name, value in options.items():
        if name not in accepted:
            raise ValueError(unknown(f"option of {what}", name, [one for one in accepted if one != "partial"]))
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
    "Sequence[str]": lambda value: isinstance(value, list | tuple) and all(isinstance(one, str) for one in value),
    "None": lambda value: value is None,
}
"""Whether a value suits an annotation; others are not looked at."""


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
