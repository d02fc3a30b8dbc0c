"""JSON and TOML from untrusted files: parsed completely, or refused with a one-line error."""

import json
import math
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

DEPTH = 100
"""Levels of nesting that are accepted, more than any settings have; the parsers end at about 1000."""


def from_json(text: str | bytes) -> Any:
    """Content of a JSON text; NaN and Infinity, as Python writes them, are accepted.

    Raises:
        ValueError: If it is no JSON, no Unicode, nested too deeply, or has a number beyond float64; in one line.
    """
    return _parsed("JSON", lambda: json.loads(text, parse_float=_number))


def json_table(text: str | bytes) -> dict[str, Any]:
    """Content of a JSON text that is a table.

    Raises:
        ValueError: If it is none, or as `from_json` does.
    """
    content = from_json(text)
    if not isinstance(content, dict):
        raise ValueError(f"not a JSON table: it is {type(content).__name__}")
    return content


def from_toml(text: str | bytes) -> dict[str, Any]:
    """Content of a TOML text.

    Raises:
        ValueError: If it is no TOML, no Unicode, nested too deeply, or has a number beyond float64; in one line.
    """
    return _parsed(
        "TOML", lambda: tomllib.loads(text.decode() if isinstance(text, bytes) else text, parse_float=_number)
    )


def dotted(content: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Values of a table and of the tables in it, by their dotted keys; an empty table has none."""
    values: dict[str, Any] = {}
    for key, value in content.items():
        values |= dotted(value, f"{above}{key}.") if isinstance(value, Mapping) else {f"{above}{key}": value}
    return values


def _parsed(name: str, parse: Callable[[], Any]) -> Any:
    try:
        content = parse()
        _require_shallow(content)
    except RecursionError:
        raise ValueError(f"no {name}: brackets are nested more than {DEPTH} deep") from None
    except ValueError as reason:
        raise ValueError(f"no {name}: {' '.join(str(reason).split())}") from None
    return content


def _require_shallow(content: Any) -> None:
    """Raise RecursionError, as the parsers do, below the depth at which what goes through the content would."""
    level = [content]
    for _ in range(DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise RecursionError


def _number(text: str) -> float:
    """A number as it is written; only `inf` itself is infinite."""
    value = float(text)
    if math.isinf(value) and "inf" not in text:
        raise ValueError(f"the number {text[:40]} is beyond float64")
    return value


def toml_value(text: str) -> Any:
    """The value of a text in TOML, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text.strip()
