"""One answer that a record gives about a run."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from drift.analyses.bootstrap import Estimate


@dataclass(frozen=True)
class Finding:
    """An answer.

    Args:
        name: training, labels, centre, error, drift, coherence, shrink or clients.
        statement: The answer in plain words.
        measure: What its number is; empty where there is none.
        value, low, high: The number, and its interval over rounds or seeds; NaN where there is none.
        unit: Of the number.
        tested: Whether the answer was tried out on the record, not only read from it.
        figure: Of the gallery, to look at.
        suggestion: What to do; empty where there is nothing.
    """

    name: str
    statement: str
    measure: str = ""
    value: float = nan
    low: float = nan
    high: float = nan
    unit: str = "1"
    tested: bool = False
    figure: str = ""
    suggestion: str = ""


def finding(
    name: str,
    statement: str,
    measure: str,
    number: Estimate,
    unit: str,
    figure: str,
    *,
    tested: bool = False,
    suggestion: str = "",
) -> Finding:
    """An answer with a number and its interval."""
    ends = (number.value, number.low, number.high)
    return Finding(name, statement, measure, *ends, unit, tested, figure, suggestion)
