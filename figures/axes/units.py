"""Numbers with a unit, as tables write them."""

import numpy as np
import xarray as xr

ABSENT = "\u2013"
"""Text of a cell without a value: a dash."""


def amount(value: float, unit: str) -> str:
    """Three digits with a decimal prefix; seconds below one in ms."""
    if value != value:
        return ABSENT
    if unit == "1":
        return f"{value:.2f}"
    if unit == "s":
        return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"
    for power, prefix in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if value >= 10**power:
            return f"{value / 10**power:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def ranged(ds: xr.Dataset, name: str, unit: str) -> str:
    """A number of `drift.training_cost` with its range below it, where it has one.

    A ratio to plain training of equal work whose range contains 1 is called "as plain".
    """
    value, low, high = (float(ds[key]) if key in ds else float("nan") for key in (name, f"{name}_low", f"{name}_high"))
    if low != low:
        return amount(value, unit)
    ends = [amount(end, unit) for end in (low, high)]
    units = {text.partition(" ")[2] for text in (amount(value, unit), *ends)}
    between = "[" + ", ".join(text.partition(" ")[0] if len(units) == 1 else text for text in ends) + "]"
    if name == "plain_ratio" and float(ds["macs_round"]) == float(ds["macs_plain"]) and low <= 1 <= high:
        return "as plain" if low == high else f"as plain\n{between}"
    return f"{amount(value, unit)}\n{between}"


def rounds_text(value: float) -> str:
    """A number of rounds, in tenths; a word for an infinite one."""
    return NOT_REACHED if np.isinf(value) else f"{value:.1f}".removesuffix(".0")


NOT_REACHED = "not reached"
"""Text of infinitely many rounds: a mean over seeds of which one or more did not reach a target."""
