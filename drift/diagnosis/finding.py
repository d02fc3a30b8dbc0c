"""An answer to a question about a run."""

from dataclasses import dataclass
from math import nan
from typing import Any

from drift.analyses.over_seeds import Estimate


@dataclass(frozen=True)
class Finding:
    """An answer.

    Args:
        name: training, labels, centre, error, drift, coherence, shrink or clients.
        statement: The answer as a sentence.
        measure: Description of its number; empty without a number.
        value, low, high: The number, and its 95 % t interval over rounds or seeds; NaN without a number. Successive
            rounds are not independent values.
        unit: Unit of the number.
        tested: Whether models were evaluated or trained for the answer.
        figure: Figure of the gallery that shows it.
        suggestion: Advice; empty if there is none.
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


def finding(name: str, statement: str, measure: str, number: Estimate, unit: str, figure: str, **more: Any) -> Finding:
    """An answer with a number and its interval; `more` are fields of `Finding`."""
    return Finding(name, statement, measure, number.value, number.low, number.high, unit, figure=figure, **more)
