"""Calls of public functions in Python that stands in a notebook or on a page, looked at without running it."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterable
from inspect import Parameter, signature

PACKAGES = ("drift", "landscape", "figures")


def wrong_calls(sources: Iterable[str]) -> list[str]:
    """Names that the packages lack, and calls with words that a function does not take."""
    packages = {name: importlib.import_module(name) for name in PACKAGES}
    parts = [ast.parse(source) for source in sources]
    named = [
        node
        for part in parts
        for node in ast.walk(part)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in packages
    ]
    wrong = [ast.unparse(node) for node in named if not hasattr(packages[node.value.id], node.attr)]
    for call in (node for part in parts for node in ast.walk(part) if isinstance(node, ast.Call)):
        if call.func not in named or ast.unparse(call.func) in wrong:
            continue
        taken = signature(getattr(packages[call.func.value.id], call.func.attr)).parameters.values()
        words = {word.arg for word in call.keywords if word.arg} - {parameter.name for parameter in taken}
        if words and not any(parameter.kind is Parameter.VAR_KEYWORD for parameter in taken):
            wrong.append(ast.unparse(call))
    return wrong
