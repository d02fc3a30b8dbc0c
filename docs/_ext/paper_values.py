"""Settings of runs of an item as text, and which of them a paper compares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from _ext.paper_settings import flat
from drift.config.experiment import Experiment
from figures.papers import catalogue

OF_SETTINGS = ("task.dataset", "task.model", "clients.number", "clients.partition.name")
"""What tells the settings of an item with several."""


def text_rows(experiments: Sequence[Experiment]) -> list[dict[str, str]]:
    """Settings of experiments as text by dotted name, that of the method by its label."""
    return [{**flat(one), "method": one.method.label} for one in experiments]


def compared_keys(item: catalogue.Item, theirs: Sequence[dict[str, str]]) -> list[str]:
    """Keys in which the paper's runs of an item differ: those that are crossed, and of its settings."""
    crossed = {key for grid in item.grid for key in grid if key not in ("rounds", "method.base", "method.variant")}
    keys = [*crossed, *(OF_SETTINGS if len(item.settings) > 1 else ())]
    return [key for key in sorted(set(keys)) if len(values_of(theirs, key)) > 1]


def values_of(rows: Sequence[dict[str, str]], key: str) -> set[str]:
    """Values of a setting; a key of clients may be one of the partition."""
    if key == "method":
        return {row[key] for row in rows}
    first, _, last = key.partition(".")
    pattern = re.compile(rf"{first}\.(\w+\.)*{re.escape(last)}(\..+)?$")
    texts = {tuple(f"{name}={value}" for name, value in row.items() if pattern.match(name)) for row in rows}
    return {", ".join(text) for text in texts if text}


def key_text(name: str) -> str:
    return "partition" if name == "clients.partition.name" else name.rpartition(".")[2].replace("_", " ")


def value_text(value: Any) -> str:
    return (
        str(value).lower()
        if isinstance(value, bool)
        else ",".join(map(str, value))
        if isinstance(value, list | tuple)
        else str(value)
    )
