"""What a notebook shows of a value: its one line, and a table of its parts."""

from collections.abc import Mapping
from html import escape
from typing import Any

SHOWN = 20
"""Number of entries of a list that are shown, and of rows."""


def notebook_table(line: str, rows: Mapping[str, Any]) -> str:
    """HTML of a line of text with a table below it: one row per name, everything escaped."""
    first = dict(list(rows.items())[:SHOWN]) | ({"...": f"({len(rows)} in all)"} if len(rows) > SHOWN else {})
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(_text(value))}</td></tr>" for name, value in first.items())
    return f"<p>{escape(line)}</p><table>{cells}</table>"


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        first = ", ".join(map(_text, value[:SHOWN]))
        return first if len(value) <= SHOWN else f"{first}, ... ({len(value)} in all)"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
