"""Datasets whose variables have a long name and a unit."""

from collections.abc import Mapping
from typing import Any

import xarray as xr


def labelled(
    variables: Mapping[str, Any], about: Mapping[str, Any] | None = None, coords: Mapping[str, Any] | None = None
) -> xr.Dataset:
    """A dataset whose variables are (dimensions, values, long name, unit); a unit of 1, or both, may be left out.

    Args:
        about: Attributes of the dataset, such as analysis and source.
        coords: Coordinates in the same form, or plain values.
    """

    def entry(value: Any) -> Any:
        if not isinstance(value, tuple):
            return value
        dims, values, *words = value
        return dims, values, dict(zip(("long_name", "units"), (*words, "1"), strict=False)) if words else {}

    inner, outer = ({name: entry(value) for name, value in (table or {}).items()} for table in (variables, coords))
    return xr.Dataset(inner, outer, about)
