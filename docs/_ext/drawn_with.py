"""Which figures of the gallery are drawn with a public function: their code is followed through its helpers."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

from figures import gallery

FOLLOWED = ("figures.gallery", "figures.axes", "drift.analyses")
"""Packages whose functions are followed to the functions that they name."""


@cache
def figures_of() -> dict[int, list[str]]:
    """Names of figures by the identity of a function that their file names, itself or through a helper."""
    found = defaultdict(list)
    for name in gallery.names():
        module = importlib.import_module(f"figures.gallery.{name.replace('-', '_')}")
        reached: set[int] = set()
        for part in ("data", "draw"):
            _follow(module.__name__, part, reached)
        for one in reached:
            found[one].append(name)
    return dict(found)


def _follow(module: str, name: str, reached: set[int]) -> None:
    """Add every function that a function of a module names, and those that these name."""
    for value in _named(module, name):
        value = inspect.unwrap(value)
        if id(value) not in reached:
            reached.add(id(value))
            if value.__module__.startswith(FOLLOWED):
                _follow(value.__module__, value.__name__, reached)


@cache
def _named(module: str, name: str) -> tuple[Any, ...]:
    """Functions that the definition of a name in a module refers to."""
    names = vars(importlib.import_module(module))
    definition = _definitions(module).get(name)
    values = (_value(node, names) for node in ast.walk(definition)) if definition else iter(())
    return tuple(value for value in values if inspect.isfunction(value))


@cache
def _definitions(module: str) -> dict[str, ast.AST]:
    """Functions and assigned values of a module, by name."""
    return dict(_defined(ast.parse(inspect.getsource(importlib.import_module(module)))))


def _defined(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.Assign):
            yield from ((target.id, node) for target in node.targets if isinstance(target, ast.Name))


def _value(node: ast.AST, names: dict[str, Any]) -> Any:
    """What a name or a chain of attributes of modules stands for; None for anything else."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and inspect.ismodule(owner := _value(node.value, names)):
        return getattr(owner, node.attr, None)
    return None
