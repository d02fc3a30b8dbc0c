"""Tables of the pages, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drift.analyses.over_seeds import Estimate


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts."""
    lines = [f"|{'|'.join(head)}|", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"|{'|'.join(row)}|" for row in rows)])


def span(interval: Estimate, digits: int, unit: str = "") -> str:
    """Mean with its interval; effects in log2 as ratios, Fisher's z as correlations."""
    if interval.number == 0:
        return ""
    shown = [f"{2**value:.3g}" if unit == "log2" else f"{value:+.{digits}f}" for value in interval.shown]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]" if interval.number > 1 else shown[0]
