"""Experiments from TOML files, presets, methods' variants and overrides; every mistake in one clear line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from drift import partitions
from drift.config import method as methods
from drift.config.experiment import Clients, Experiment
from drift.config.initial_model import pinned
from drift.config.migrations import migrated
from drift.config.shipped import experiment_file, plans, presets
from drift.plugins import trust
from drift.store import files
from landscape import outside, plugins
from landscape.results.parsed_text import from_toml

__all__ = ["plans", "presets", "read", "validated"]


def read(source: str | Path | Experiment, *overrides: str, **options: Any) -> Experiment:
    """The experiment of a preset or file, with overrides.

    A file may hold tables `[variants.NAME]`: settings that apply when method NAME is chosen, or is what the chosen one
    averages (`method.base`), so that one file describes a fair comparison of methods that want different local rates.
    Where a change names a bundle (`method.like=code`), it takes the place of what the file says of its options.
    `extends = "NAME"` (a preset, or a file in the same folder) takes over all that another file says; what the file
    says itself wins, and where it names another partition, method, dataset or model, the options of the one before are
    dropped.

    Args:
        source: Name of a preset, path of a TOML file, folder of a run, or an experiment to change.
        overrides: Texts like "method.mu=0.1"; the value is read as TOML, else as text.
        options: The same by name; "__" stands for the dot, as in `local__lr=0.1`.

    Raises:
        ValueError: If a key or value is wrong; the key, the value and what is accepted are named.
        LookupError: If there is no such file, or no such checkpoint to start from.
    """
    content = source.resolved() if isinstance(source, Experiment) else _table(source)
    where = "experiment" if isinstance(source, Experiment) else str(source)
    changes = [_assignment(text) for text in overrides]
    changes += [(name.replace("__", "."), value) for name, value in options.items()]
    for name, value in changes:  # what the caller names is trusted, what a file names is not
        trust.allow_setting(name, value)
    if isinstance(source, Experiment):
        trust.allow_own(content)
    variants = content.pop("variants", {})
    chosen = _chosen(content, changes)
    for name, value in changes:
        _swap(content, name, value)
    for name, value in changes:  # the method stands by now, wherever among the changes it is named
        _rebase(content, name, value)
    if isinstance(content.get("method"), str):
        content["method"] = {"name": content["method"]}
    if (base := _base(content, changes)) is not None and base in variants:
        content = _merged(content, _as_base(base, variants[base]))
    if chosen in variants:
        content = _merged(content, variants[chosen])
    for name, value in changes:
        _unbundle(content, name, value)
    for name, value in changes:
        if name in ("method", "method.name", "method.base", "method.base.name") and isinstance(value, str):
            continue
        _assign(content, name, value)
    experiment = validated(content, where)
    for part in (experiment.task.dataset, experiment.task.model):
        trust.require_trusted(part, f"{where} names")
    return pinned(experiment)


def validated(content: Mapping[str, Any], where: str = "experiment") -> Experiment:
    """The experiment that a table describes.

    Raises:
        ValueError: If a key or value is wrong, in one line.
    """
    try:
        return Experiment.model_validate(content)
    except ValidationError as problem:
        raise ValueError(f"{where}: {_explained(problem, content)}") from None


def _table(source: str | Path) -> dict[str, Any]:
    path = experiment_file(source)
    if path.is_dir():
        return _of_run(path)
    return _extended(_parsed(path), path)


def _of_run(folder: Path) -> dict[str, Any]:
    """The settings of a trained run, from its description."""
    about = files.read_json(folder / "run.json")
    if about.get("unknown") or not isinstance(about.get("experiment"), dict):
        raise LookupError(f"{folder} contains no experiment that can be trained again; give a preset or a TOML file.")
    return migrated(about)


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return from_toml(path.read_bytes())
    except ValueError as problem:
        raise ValueError(f"{path} is {problem}.") from None


def _extended(content: dict[str, Any], path: Path) -> dict[str, Any]:
    """What a file says on top of what the file that it extends says."""
    named = content.pop("extends", None)
    if named is None:
        return content
    known = presets()
    below = path.parent / str(named)
    if not below.is_file():
        if named not in known:
            raise LookupError(f"{path} extends: {plugins.unknown('experiment', str(named), known)}")
        below = known[named]
    base = _parsed(below)
    if "extends" in base:
        raise ValueError(f"{path} extends {below}, which extends {base['extends']!r}; one may be extended, not two.")
    return _merged(_without_options(base, content), content)


def _without_options(base: dict[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """The base without the options of a dataset and of a model in whose place the file names another."""
    task, above = base.get("task"), content.get("task")
    if not isinstance(task, dict) or not isinstance(above, dict):
        return base
    gone = {f"{part}_options" for part in ("dataset", "model") if above.get(part, task.get(part)) != task.get(part)}
    return {**base, "task": {name: value for name, value in task.items() if name not in gone}}


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"cannot read {text!r}; write KEY=VALUE, as in method.window=5.")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return name.strip(), value.strip()


def _chosen(content: Mapping[str, Any], changes: Iterable[tuple[str, Any]]) -> str | None:
    """Name of the method that will be trained."""
    named = content.get("method", "fedavg")
    for name, value in changes:
        if name in ("method", "method.name"):
            named = value
    return _name(named)


def _swap(content: dict[str, Any], name: str, value: Any) -> None:
    """Where a change names another method or partition, drop the options of the one before."""
    named = value.get("name") if isinstance(value, dict) else value
    if name in ("method", "method.name") and named != _name(content.get("method")):
        content["method"] = {"name": named}
    clients = content.get("clients")
    if name in ("clients.partition", "clients.partition.name") and isinstance(clients, dict):
        before = _name(clients.get("partition"))
        if (before in partitions.names() or outside.is_outside(str(before))) and named != before:
            options = set(partitions.load(before).model_fields) - set(Clients.model_fields)
            kept = {key: held for key, held in clients.items() if key not in options}
            content["clients"] = {**kept, "partition": {"name": named}}


def _rebase(content: dict[str, Any], name: str, value: Any) -> None:
    """Where a change names another base of the method, drop the options of the one before."""
    if name not in ("method.base", "method.base.name") or not isinstance(value, str):
        return
    method = content.get("method", "fedavg")
    method = {"name": method} if isinstance(method, str) else method
    if _name(method.get("base")) != value:
        content["method"] = {**method, "base": {"name": value}}


def _unbundle(content: dict[str, Any], name: str, value: Any) -> None:
    """Where a change names a bundle, drop what stands for its options, and for those of the bundle before."""
    if name not in ("method.like", "method.base.like"):
        return
    holder, key = (content, "method") if name == "method.like" else (content.get("method"), "base")
    table = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(holder, dict) or not isinstance(table, dict):
        return
    bundles = methods.load(str(table.get("name", "fedavg"))).bundles
    known = [bundles[str(like)] for like in (value, table.get("like")) if like in bundles]
    gone = {option for bundle in known for option in bundle.options}
    holder[key] = {option: held for option, held in table.items() if option not in gone}


def _base(content: Mapping[str, Any], changes: Iterable[tuple[str, Any]]) -> str | None:
    """Name of the method that the chosen one averages; None where none is named."""
    method = content.get("method")
    named = method.get("base") if isinstance(method, dict) else None
    for name, value in changes:
        if name == "method" and isinstance(value, dict):
            named = value.get("base")
        elif name in ("method.base", "method.base.name"):
            named = value
    return _name(named)


def _as_base(name: str, variant: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a variant where its method is the base of another."""
    options = {key: value for key, value in variant.get("method", {}).items() if key != "name"}
    return {**variant, "method": {"base": {"name": name, **options}}}


def _name(table: Any) -> Any:
    return table.get("name") if isinstance(table, dict) else table


def _assign(content: dict[str, Any], name: str, value: Any) -> None:
    *parents, last = name.split(".")
    place = content
    for parent in parents:
        inner = place.get(parent)
        if isinstance(inner, str):  # method = "ima" and method.window = 5
            inner = {"path" if parent == "init" else "name": inner}
        if inner is not None and not isinstance(inner, dict):
            raise ValueError(f"{name}: {parent} is a single value, not a table of settings.")
        place[parent] = dict(inner or {})
        place = place[parent]
    place[last] = value


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        held = merged.get(name)
        if isinstance(held, dict) and isinstance(value, dict):
            same = value.get("name", held.get("name")) == held.get("name")
            value = _merged(held, value) if same else value
        merged[name] = value
    return merged


def _explained(problem: ValidationError, content: Mapping[str, Any]) -> str:
    """The first mistake as one line: which key, what was given, what is accepted."""
    first = problem.errors(include_url=False)[0]
    path = [str(part) for part in first["loc"]]
    key, given = ".".join(path), first.get("input")
    if first["type"] == "extra_forbidden":
        *parents, last = path
        known = sorted(_keys(parents, content))
        inside = f" in {'.'.join(parents)}" if parents else ""
        return plugins.unknown(f"setting{inside}", last, known)
    if first["type"] == "missing":
        return f"{key} is missing; give it in the file or by --set {key}=VALUE."
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        return f"{key}: {message}" if key else message
    if first["type"] in ("model_type", "dict_type"):
        return f"{key} is {given!r}; it is a table of settings, set as {key}.NAME=VALUE."
    return f"{key} is {given!r}: {message[0].lower()}{message[1:]}."


def _keys(path: list[str], content: Mapping[str, Any]) -> set[str]:
    """Settings accepted in the table at `path`."""
    model: type[BaseModel] = Experiment
    table: Any = content
    for part in path:
        table = table.get(part) if isinstance(table, dict) else None
        if part in ("method", "base", "partition"):
            name = table.get("name") if isinstance(table, dict) else table
            loaded = methods.load if path[0] == "method" else partitions.load
            model = loaded(str(name or "fedavg"))
        else:
            inner = model.model_fields[part].annotation if part in model.model_fields else None
            if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
                inner = _inside(inner)
            if inner is None:
                return set()
            model = inner
    extra = {"name"} if path and path[-1] in ("method", "base", "partition") else set()
    if model is Clients and isinstance(table, dict):
        named = table.get("partition", "iid")
        extra |= set(partitions.load(str(named.get("name") if isinstance(named, dict) else named)).model_fields)
    return set(model.model_fields) | extra


def _inside(annotation: Any) -> type[BaseModel] | None:
    """The model in an optional annotation."""
    options = getattr(annotation, "__args__", ())
    found = [option for option in options if isinstance(option, type) and issubclass(option, BaseModel)]
    return found[0] if found else None
