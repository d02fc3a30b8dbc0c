"""Names of numbers with their units, in both drawing libraries, lists in words, and lines of even length."""

import re
from collections.abc import Sequence

import xarray as xr


def text(values: xr.DataArray) -> str:
    """Axis label of a variable, `name [unit]`; numbers without unit have none."""
    return with_unit(str(values.attrs.get("long_name", str(values.name).replace("_", " "))), values)


def with_unit(name: str, values: xr.DataArray) -> str:
    """A name with the unit of a variable in brackets, where it has one."""
    unit = values.attrs.get("units", "1")
    return name if unit in ("1", "fraction", "") else f"{name} [{unit}]"


def in_words(number: str, values: xr.DataArray) -> str:
    """A number with the unit of a variable behind it, where it has one."""
    unit = values.attrs.get("units", "1")
    return number if unit in ("1", "fraction", "") else f"{number} {unit}"


def listed(parts: Sequence[str]) -> str:
    """Parts with commas between them, and "and" before the last."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def length(line: str) -> int:
    """Letters of a line; a formula counts without its commands and braces."""
    plain = re.sub(r"\\[a-zA-Z]+", "x", re.sub(r"\$([^$]*)\$", lambda at: re.sub(r"[{}^_]|\\[,;]", "", at[1]), line))
    return len(plain)


def even_lines(line: str, most: int) -> list[str]:
    """The fewest lines with this many letters at most, of nearly one length."""
    lines = _lines(line, most)
    while most > 1 and len(shorter := _lines(line, most := most - 1)) == len(lines) > 1:
        lines = shorter
    return lines


def _lines(line: str, most: int) -> list[str]:
    words, lines = re.findall(r"(?:\$[^$]*\$|\S)+", line), [""]
    for word in words:
        joined = f"{lines[-1]} {word}".strip()
        if lines[-1] and length(joined) > most:
            lines.append(word)
        else:
            lines[-1] = joined
    return lines


PLAIN = (1e-3, 1e4)
"""Ends of a logarithmic axis between which its numbers are written plainly; of a longer one, by powers of ten."""
