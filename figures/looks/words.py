"""Names of numbers with their units, in both drawing libraries, and lists in words."""

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


PLAIN = (1e-3, 1e4)
"""Ends of a logarithmic axis between which its numbers are written plainly; of a longer one, by powers of ten."""
