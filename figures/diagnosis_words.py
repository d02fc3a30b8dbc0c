"""A diagnosis in words: what a screen and the report say of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drift.diagnosis import Diagnosis

QUESTIONS = {
    "centre": "centre of the basin",
    "error": "largest error part",
    "drift": "period or client drift",
    "coherence": "coherence of clients",
    "shrink": "shrinking the model",
    "clients": "clients that differ",
    "training": "training itself",
}
"""What a finding answers, by its name."""


def verdict(found: Diagnosis) -> str:
    """The first cause, or why there is none, in one or two sentences."""
    first = found.first
    if first is not None:
        gained = f"{first.gain.value:.2g} nats" if first.gain.value >= 0 else "no loss within so few rounds"
        said = f"First cause: {first.title} ({gained} gained by: {first.test}). Look at figure {first.figure}."
    elif found.untested:
        said = f"Causes were not tested: {found.untested}. What follows is read from the record."
    else:
        said = "No clear cause: no tested change gains clearly."
    return f"{'Training broke down. ' if found.broken else ''}{said}"


def interval(value: float, low: float, high: float, unit: str = "") -> str:
    """A number with the ends of its interval and its unit."""
    if not math.isfinite(value):
        return "-"
    scale, sign, after = (100, "", " %") if unit == "fraction" else (1, "+", " nats" if unit == "nats" else "")
    ends = f" [{low * scale:{sign}.2g}, {high * scale:{sign}.2g}]" if math.isfinite(low) else ""
    return f"{value * scale:{sign}.2g}{ends}{after}"


def percent(share: float) -> str:
    """A share in whole percents."""
    return f"{100 * share:.0f} %" if math.isfinite(share) else "-"
