"""Mistakes in settings as one plain line: the setting, its value, and what is accepted."""

from collections.abc import Mapping
from datetime import date, time
from typing import Any

from pydantic import BaseModel, ValidationError

from drift import partitions
from drift.config import method as methods
from drift.config.experiment import Clients, Experiment
from drift.plugins.tables import table_name
from landscape import plugins

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "a text",
    "tuple": "a list, as in [1, 2]",
}
"""What is accepted, by the first word of an error's type."""

_SEVERAL = {"int": "whole numbers", "float": "numbers"}
"""What is accepted in a list."""

PLUGINS = ("method", "base", "partition")
"""Settings that name a plug-in."""

_LIMITS = {
    "greater_than": "a number above {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "a number below {lt}",
    "less_than_equal": "{le} or less",
    "too_short": "a list of {min_length} or more",
    "too_long": "a list of {max_length} or fewer",
    "literal_error": "{expected}",
}
"""What is accepted, by an error's type, with its numbers."""


def explain(problem: ValidationError, content: Mapping[str, Any]) -> str:
    """The first mistake in a table of settings."""
    errors = problem.errors(include_url=False)
    first, loc = errors[0], errors[0]["loc"]
    path = [str(word) for word in loc]
    key, value = ".".join(path), first.get("input")
    if first["type"] == "extra_forbidden":
        *parents, last = path
        inside = f" in {'.'.join(parents)}" if parents else ""
        return plugins.unknown(f"setting{inside}", last, sorted(_keys(parents, content)))
    if first["type"] == "missing" and isinstance(loc[-1], int):
        return f"{'.'.join(path[:-1])} is {_shown(value)}; give more values."
    if first["type"] == "missing":
        return f"{key} is missing; give it in the file or by --set {key}=VALUE."
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        return f"{key}: {message}" if key else message
    if isinstance(value, type):
        module = value.__module__.rpartition(".")[2] if value.__module__.startswith("drift.") else ""
        text = module or f"{'FILE.py' if value.__module__ == '__main__' else value.__module__}:{value.__name__}"
        saved = " of the file that holds it" if text.startswith("FILE.py") else ""
        return f"{key} is the class {value.__name__}, not a name; did you mean the text {text!r}{saved}?"
    if first["type"] in ("model_type", "dict_type", "is_instance_of"):
        options = f"set as {key}.NAME=VALUE"
        kind = f"a name, its options {options}" if path[-1] in PLUGINS else f"a table of settings, {options}"
        return f"{key} is {_shown(value)}; it is {kind}."
    others = [error for error in errors[1:] if error["loc"][:-1] == loc[:-1] and error.get("input") is value]
    if others and isinstance(loc[-1], str):  # one setting of several kinds, each with its own mistake
        key = ".".join(path[:-1])
    accepted = [_accepted(error) for error in (first, *others)]
    return f"{key} is {_shown(value)}; give {', or '.join(dict.fromkeys(accepted))}."


def _shown(value: Any) -> str:
    """A value as it is written in TOML; of a plug-in without options its name alone."""
    if isinstance(value, dict) and set(value) == {"name"}:
        value = value["name"]
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, date | time) else repr(value)


def _accepted(error: Any) -> str:
    kind = error["type"]
    if kind in _LIMITS:
        numbers = {name: f"{value:g}" if isinstance(value, float) else value for name, value in error["ctx"].items()}
        return _LIMITS[kind].format(**numbers)
    kinds = _KINDS | (_SEVERAL if isinstance(error.get("input"), list | tuple) else {})
    return kinds.get(kind.partition("_")[0], f"another value: {error['msg']}")


def _keys(path: list[str], content: Mapping[str, Any]) -> set[str]:
    model: type[BaseModel] = Experiment
    table: Any = content
    for key in path:
        table = table.get(key) if isinstance(table, dict) else None
        if key in PLUGINS:
            load = methods.load if path[0] == "method" else partitions.load
            model = load(str(table_name(table) or "fedavg"))
        else:
            inner = _model_in(model.model_fields[key].annotation) if key in model.model_fields else None
            if inner is None:
                return set()
            model = inner
    extra = {"name"} if path and path[-1] in PLUGINS else set()
    if model is Clients and isinstance(table, dict):
        extra |= set(partitions.load(str(table_name(table.get("partition", "iid")))).model_fields)
    return set(model.model_fields) | extra


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model of settings that an annotation is, or one of its options."""
    options = getattr(annotation, "__args__", (annotation,))
    models = [option for option in options if isinstance(option, type) and issubclass(option, BaseModel)]
    return models[0] if models else None
