"""Values of JSON from those of analyses, and the refusal of what takes too long."""

import math
from collections.abc import Mapping
from typing import Any

import torch
import xarray as xr
from pydantic_core import to_jsonable_python


class RefusedQuestion(ValueError):
    """A question that cannot be answered, or not at this cost; its text says why and what would help."""


def require_time(cost: float, accepted: float, words: str, times: float = 1) -> None:
    """Refuse what takes longer than is accepted, or a time that is not known.

    Raises:
        RefusedQuestion: With the cost.
    """
    if not cost <= accepted:
        time = f"about {cost:.0f} s" if math.isfinite(cost) else "a time that cannot be estimated"
        words += f", {times:.0f} times as large as usual" if times > 1 else ""
        raise RefusedQuestion(
            f"this takes {time} ({words}), and {accepted:g} s are accepted; tell the user, and call again with "
            f"seconds={math.ceil(cost) if math.isfinite(cost) else 1e9:.0f} if it is wanted."
        )


def estimate(mean: torch.Tensor, single: torch.Tensor) -> dict[str, float | None]:
    """A mean and its standard error from the values of single samples; those without a value do not count."""
    known = single[~single.isnan()].double()
    error = float(known.std() / len(known) ** 0.5) if len(known) > 1 else math.nan
    return {"value": plain(float(mean)), "standard_error": plain(error if math.isfinite(float(mean)) else math.nan)}


def array(values: xr.DataArray, *, brief: bool = False) -> dict[str, Any]:
    """A variable with its meaning, unit, coordinates and values; of a brief one the range in place of the values."""
    about = {key: plain(values.attrs[key]) for key in ("long_name", "units") if key in values.attrs}
    if brief:
        number = values.dtype.kind in "fiu" and bool(values.notnull().any())
        ends = {name: plain(getattr(values, name)().item()) for name in ("min", "median", "max")} if number else {}
        return {**about, "sizes": plain(values.sizes), **ends, "values": "name the variable to have them"}
    coords = {str(dim): plain(values[dim].values) for dim in values.dims if dim in values.coords}
    return {**about, "dims": list(map(str, values.dims)), "values": plain(values.values), "coordinates": coords}


def plain(value: Any) -> Any:
    """A value of JSON: lists for arrays, texts for what JSON does not know, None for numbers that are not finite."""
    return to_jsonable_python(value, fallback=_known, inf_nan_mode="null")


def _known(value: Any) -> Any:
    if isinstance(value, Mapping | range):
        return dict(value) if isinstance(value, Mapping) else list(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)
