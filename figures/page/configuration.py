"""The settings of runs as tables."""

from collections.abc import Mapping
from typing import Any

from drift.runs.run import Run
from figures.axes.units import ABSENT
from figures.selection.groups import differing_names, settings, written_name
from figures.selection.setting_text import value_text

Table = dict[str, Any]
"""head: headings; rows: (name of the row, cells)."""


def configuration(grouped: Mapping[str, list[Run]]) -> dict[str, Table]:
    """The resolved settings: those that differ between methods, and those common to all; a dash for what is absent."""
    tables = {name: settings(group[0], seed=False) for name, group in grouped.items()}
    differing = differing_names(list(tables.values()))
    first = next(iter(tables.values()))
    return {
        "differing": {
            "head": ["Setting", *map(written_name, tables)],
            "rows": [(name, [shown(table.get(name)) for table in tables.values()]) for name in differing],
        },
        "common": {
            "head": ["Setting", "Value"],
            "rows": [(name, [shown(value)]) for name, value in first.items() if name not in differing],
        },
    }


def shown(value: Any) -> str:
    """A setting's value as pages show it: a dash for what is absent."""
    return ABSENT if value is None else value_text(value) or ABSENT
