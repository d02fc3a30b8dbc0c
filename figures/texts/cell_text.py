"""Numbers as cells of tables write them."""

from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr

from figures.axes.units import ABSENT, amount, rounds_text
from figures.texts.best_rows import spread


def mean_text(row: np.ndarray, values: xr.DataArray, *, deviation: bool, counted: bool) -> str:
    """Mean of a row over seeds, what is missing left out, its spread, and in brackets the number of seeds."""
    present = row[~np.isnan(row)]
    if not len(present):
        return ABSENT
    middle, wide = number_text(float(present.mean()), values), spread(row, deviation=deviation)
    text = f"{middle} \u00b1 {number_text(wide, values)}" if np.isfinite(wide) and wide > 0 else middle
    return f"{text} ({len(present)})" if counted else text


def number_text(value: float, values: xr.DataArray) -> str:
    """A number as tables write it: fractions in percent, rounds in tenths, all else with four digits.

    The attribute `digits` of the variable, digits after the point, decides where it is set; fractions are then as is.
    """
    if np.isnan(value) or (np.isinf(value) and values.attrs.get("units") != "rounds"):
        return ABSENT if np.isnan(value) else f"{value}"
    writers: dict[str, Callable[[float], str]] = {
        "fraction": lambda number: f"{100 * number:.2f}",
        "points": "{:.2f}".format,
        "rounds": rounds_text,
        **{unit: partial(amount, unit=short) for unit, short in AMOUNTS.items()},
    }
    if "digits" in values.attrs:
        return f"{value:.{values.attrs['digits']}f}"
    return writers.get(str(values.attrs.get("units")), "{:.4g}".format)(value)


AMOUNTS = {"MAC": "MAC", "bytes": "B", "s": "s"}
"""Units that stand in the cells, with a decimal prefix."""
