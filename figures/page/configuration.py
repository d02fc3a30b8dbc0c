"""The settings of runs as tables, and values as texts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from drift.runs.run import Run
from figures.axes.units import ABSENT
from figures.selection.groups import differing_names, settings, written_name

Table = dict[str, Any]
"""head: headings; rows: (name of the row, cells)."""


def configuration(grouped: Mapping[str, list[Run]]) -> dict[str, Table]:
    """The resolved settings: those that differ between methods, and those common to all."""
    tables = {name: settings(group[0], seed=False) for name, group in grouped.items()}
    differing = differing_names(list(tables.values()))
    first = next(iter(tables.values()))
    return {
        "differing": {
            "head": ["Setting", *map(written_name, tables)],
            "rows": [(name, [shown(table.get(name, "")) for table in tables.values()]) for name in differing],
        },
        "common": {
            "head": ["Setting", "Value"],
            "rows": [(name, [shown(value)]) for name, value in first.items() if name not in differing],
        },
    }


def shown(value: Any) -> str:
    """A value as text: numbers with four significant digits, what is absent as a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value)) or ABSENT
    return json.dumps(value) if isinstance(value, dict) else str(value)
