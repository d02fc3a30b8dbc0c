"""Experiments from TOML files, presets, variants of methods and overrides; errors are one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from drift.config import method as methods
from drift.config.experiment import Experiment, partition_gathered
from drift.config.explain import explain
from drift.config.initial_model import with_digest
from drift.config.shipped import experiment_file, plans, presets
from drift.plugins import trust
from drift.plugins.tables import table_name
from drift.store import files
from landscape import plugins
from landscape.results.parsed_text import from_toml, toml_value

__all__ = ["plans", "presets", "read", "validated"]


def read(source: str | Path | Experiment, *overrides: str, **options: Any) -> Experiment:
    """The experiment of a preset or file, with overrides.

        experiment = drift.read("digits-shards2", "local.lr=0.05", rounds=5)
        run = drift.simulate(experiment)

    A file may hold tables `[variants.NAME]`: settings that apply when method NAME is selected, or is the base of the
    selected method (`method.base`), so that one file describes a fair comparison of methods with different local rates.
    An override that names a bundle (`method.like=code`) replaces the options of the bundle in the file.
    `extends = "NAME"` (a preset, or a file in the same folder) starts from the settings of another file, which those of
    this file override; if it names another partition, method, dataset or model, the options of the former are dropped.

    Args:
        source: Name of a preset, path of a TOML file, folder of a run, or an experiment to change.
        overrides: Texts like "method.mu=0.1"; the value is read as TOML, else as text.
        options: The same by name; "__" stands for the dot, as in `local__lr=0.1`.

    Raises:
        ValueError: If a key or value is wrong; the message names the key, the value and accepted values.
        LookupError: If there is no such file, or no such checkpoint to start from.
    """
    changes = [_parse_assignment(text) for text in overrides]
    changes += [(name.replace("__", "."), value) for name, value in options.items()]
    for name, value in changes:  # code that the caller names is trusted, code that a file names is not
        trust.allow_setting(name, value)
    if isinstance(source, Experiment):
        content, where = source.resolved(), "experiment"
        trust.allow_named(content)
    else:
        content, where = _table(source), str(source)
    if isinstance(source, Experiment) and not changes:
        experiment = source
    else:
        experiment = validated(_changed(content, changes), where)
    for code in (experiment.task.dataset, experiment.task.model):
        trust.require_trusted(code, f"{where} names")
    return with_digest(experiment)


NAMING = ("method", "method.name", "method.base", "method.base.name", "clients.partition", "clients.partition.name")
"""Settings that name a plug-in whose options are in the same table; an earlier one is taken before a later one."""


def _changed(content: dict[str, Any], changes: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Settings with changes: first the names of plug-ins, then the variants for them, bundles, and other values."""
    variants = content.pop("variants", {})
    if isinstance(method := content.setdefault("method", "fedavg"), str):
        content["method"] = {"name": method}
    _gather_partition(content)
    for name, value in sorted((change for change in changes if change[0] in NAMING), key=_order):
        _select(content, name, value)
    selected = content["method"] if isinstance(content["method"], dict) else {}
    base, method_name = table_name(selected.get("base")), str(selected.get("name"))
    if isinstance(base, str) and base in variants:
        content = _merge(content, _as_base(base, variants[base]))
    content = _merge(content, variants.get(method_name, {}))
    for name, value in sorted(changes, key=lambda change: not change[0].endswith(".like")):
        if name not in NAMING or not isinstance(value, str):
            _drop_bundle(content, name, value)
            _assign(content, name, value)
            _gather_partition(content)
    return content


def _order(change: tuple[str, Any]) -> int:
    return NAMING.index(change[0]) // 2


def validated(content: Mapping[str, Any], where: str = "experiment") -> Experiment:
    """The experiment that a table describes.

    Raises:
        ValueError: If a key or value is wrong, in one line.
    """
    try:
        return Experiment.model_validate(content)
    except ValidationError as problem:
        raise ValueError(f"{where}: {explain(problem, content)}") from None


def _table(source: str | Path) -> dict[str, Any]:
    path = experiment_file(source)
    return _of_run(path) if path.is_dir() else _extend(_parse(path), path)


def _of_run(folder: Path) -> dict[str, Any]:
    about = files.read_json(folder / "run.json")
    if about.get("unknown") or not isinstance(about.get("experiment"), dict):
        raise LookupError(f"{folder} contains no experiment that can be trained again; give a preset or a TOML file.")
    return dict(about["experiment"])


def _parse(path: Path) -> dict[str, Any]:
    try:
        return from_toml(path.read_bytes())
    except ValueError as problem:
        raise ValueError(f"{path} is {problem}.") from None


def _extend(content: dict[str, Any], path: Path) -> dict[str, Any]:
    """Settings of a file, merged into those of the file that it extends."""
    name = content.pop("extends", None)
    if name is None:
        return content
    available = presets()
    below = path.parent / str(name)
    if not below.is_file():
        if name not in available:
            raise LookupError(f"{path} extends: {plugins.unknown('experiment', str(name), available)}")
        below = available[name]
    base = _parse(below)
    if "extends" in base:
        raise ValueError(f"{path} extends {below}, which extends {base['extends']!r}; only one level is accepted.")
    for table in (base, content):
        _gather_partition(table)
    return _merge(_without_options(base, content), content)


def _without_options(base: dict[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """The base without the options of a dataset or model that the file replaces."""
    task, above = base.get("task"), content.get("task")
    if not isinstance(task, dict) or not isinstance(above, dict):
        return base
    dropped = {f"{kind}_options" for kind in ("dataset", "model") if above.get(kind, task.get(kind)) != task.get(kind)}
    return {**base, "task": {name: value for name, value in task.items() if name not in dropped}}


def _parse_assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"cannot read {text!r}; write KEY=VALUE, as in method.window=5.")
    return name.strip(), toml_value(value)


def _select(content: dict[str, Any], name: str, value: Any) -> None:
    """Put another plug-in in the place of one with its options; the same one keeps them."""
    *parents, last = name.removesuffix(".name").split(".")
    table: Any = content
    for parent in parents:
        table = table.get(parent)
        if not isinstance(table, dict):
            return  # refused when the change is made
    if isinstance(value, dict):
        table[last] = value
    elif table_name(table.get(last)) != value:
        table[last] = {"name": value}


def _gather_partition(content: dict[str, Any]) -> None:
    """Put the options beside a partition's name into its table, so that what is set or merged next replaces them."""
    clients = content.get("clients")
    if isinstance(clients, dict) and isinstance(clients.get("partition"), str | dict):
        with suppress(LookupError, ValueError):  # an unknown partition is refused when the experiment is made
            content["clients"] = partition_gathered(clients)


def _drop_bundle(content: dict[str, Any], name: str, value: Any) -> None:
    """If a change names a bundle, drop the options of it and of the former bundle."""
    if name not in ("method.like", "method.base.like"):
        return
    parent, key = (content, "method") if name == "method.like" else (content.get("method"), "base")
    table = parent.get(key) if isinstance(parent, dict) else None
    if not isinstance(parent, dict) or not isinstance(table, dict):
        return
    bundles = methods.load(str(table.get("name", "fedavg"))).bundles
    both = [bundles[str(like)] for like in (value, table.get("like")) if like in bundles]
    dropped = {option for bundle in both for option in bundle.options}
    parent[key] = {option: setting for option, setting in table.items() if option not in dropped}


def _as_base(name: str, variant: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a variant whose method is the base of another method."""
    options = {key: value for key, value in variant.get("method", {}).items() if key != "name"}
    return {**variant, "method": {"base": {"name": name, **options}}}


def _assign(content: dict[str, Any], name: str, value: Any) -> None:
    *parents, last = name.split(".")
    table = content
    for parent in parents:
        inner = table.get(parent)
        if isinstance(inner, str):  # method = "ima" and method.window = 5
            inner = {"path" if parent == "init" else "name": inner}
        if inner is not None and not isinstance(inner, dict):
            raise ValueError(f"{name}: {parent} is a single value, not a table of settings.")
        table[parent] = dict(inner or {})
        table = table[parent]
    table[last] = value


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        table = merged.get(name)
        if isinstance(table, dict) and isinstance(value, dict):
            same = value.get("name", table.get("name")) == table.get("name")
            value = _merge(table, value) if same else value
        merged[name] = value
    return merged
