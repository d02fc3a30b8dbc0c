"""Numbers with a unit, as tables write them."""

from __future__ import annotations


def amount(value: float, unit: str) -> str:
    """Three digits with a decimal prefix; seconds below one in ms."""
    if value != value:
        return "-"
    if unit == "s":
        return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"
    for power, prefix in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if value >= 10**power:
            return f"{value / 10**power:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
