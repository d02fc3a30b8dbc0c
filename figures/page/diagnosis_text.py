"""Texts of a diagnosis, for the screen and the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drift.diagnosis.diagnose import Diagnosis
    from drift.diagnosis.finding import Finding

QUESTIONS = {
    "training": "where training stands",
    "labels": "cost of uneven labels",
    "centre": "centre of the basin",
    "error": "effect of averaging",
    "drift": "cost of the drifts",
    "coherence": "agreement of clients",
    "shrink": "shrinking the model",
    "clients": "clients that differ",
}
"""Question that a finding answers, by its name."""

_STATES = {
    "diverged": "Training diverged.",
    "lost what it had": "Training lost what it had learned.",
    "not learned": "Training has learned nothing.",
    "plateau": "Training is on a plateau.",
}

LARGEST = 1e5
"""Number from which only its size is shown."""


def brackets() -> str:
    """What the intervals of a diagnosis are."""
    from drift.analyses.over_seeds import INTERVAL  # with xarray, which the help of the command line does without

    return f"[{INTERVAL}] over seeds or rounds; rounds are not independent, so over rounds it is too narrow."


def verdict(diagnosis: Diagnosis) -> str:
    """The state of training and the first cause, or why there is none."""
    first = diagnosis.first
    if first is not None:
        gained = f"{percent(first.share)} of the loss gained by {first.test}, {first.followed}"
        text = f"First: {first.title} ({gained}). Look at figure {first.figure}."
    elif diagnosis.untested:
        text = f"Causes were not tested: {diagnosis.untested.rstrip('.')}. What follows is read from the record."
    else:
        text = "No clear cause: no change that was tried gains clearly when it is followed."
    if diagnosis.memory == "anew":
        text += " Server and client memory is not recorded: in windows and late rounds it began anew."
    return " ".join(filter(None, (standing(diagnosis), text)))


def extent(diagnosis: Diagnosis) -> str:
    """How many rounds were recorded, of how many where that is not all, and the clients."""
    rounds = f"{diagnosis.rounds} of {diagnosis.last + 1}" if diagnosis.last >= diagnosis.rounds else diagnosis.rounds
    recorded = " recorded" if diagnosis.last >= diagnosis.rounds else ""
    return f"{rounds} rounds{recorded}, {diagnosis.per_round} of {diagnosis.clients} clients per round"


def standing(diagnosis: Diagnosis) -> str:
    """The state of training, in a sentence; empty where it is not known."""
    if diagnosis.state == "still learning":
        unit = next((answer.unit for answer in diagnosis.findings if answer.name == "training"), "")
        fall = interval(diagnosis.fall.value, diagnosis.fall.low, diagnosis.fall.high, unit)
        return f"Not finished: the next round is expected to gain {fall}."
    return _STATES.get(diagnosis.state, "")


def answer(finding: Finding) -> tuple[str, str]:
    """A finding's statement with its suggestion, and its number with its interval; empty where it has none."""
    statement = finding.statement + (f". Try: {finding.suggestion}" if finding.suggestion else "")
    if not math.isfinite(finding.value):
        return statement, ""
    return statement, f"{finding.measure} {interval(finding.value, finding.low, finding.high, finding.unit)}"


def interval(value: float, low: float, high: float, unit: str = "") -> str:
    """A number with the ends of its interval and its unit."""
    if not math.isfinite(value):
        return "-"
    scale, sign, after = (100, False, " %") if unit == "fraction" else (1, True, " nats" if unit == "nats" else "")
    ends = f" [{number(low * scale, sign=sign)}, {number(high * scale, sign=sign)}]" if math.isfinite(low) else ""
    return f"{number(value * scale, sign=sign)}{ends}{after}"


def number(value: float, digits: int = 2, *, sign: bool = False) -> str:
    """A number without an exponent: "-" where it is not finite, 0 below 0.00001, and only its size from 100,000 on."""
    if not math.isfinite(value):
        return "-"
    if abs(value) < 1 / LARGEST:
        return "0"
    if abs(value) >= LARGEST:
        return f"{'below -' if value < 0 else 'above '}{LARGEST:.0f}"
    digits_after = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:{'+' if sign else ''}.{digits_after}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def alike(values: Sequence[float], digits: int = 2) -> list[str]:
    """Numbers that are compared, as `number` writes them; with decimals that tell them apart, at most six digits.

    All have the same decimals, unless one is so much smaller that the others would have digits beyond those asked for.
    """
    texts = [number(value, digits) for value in values]
    if digits < 6 and len(set(texts)) < len(set(values)):
        return alike(values, digits + 1)
    decimals = max(len(text.partition(".")[2]) for text in texts)
    if max(map(abs, values)) * 10**decimals >= 10 ** (digits + 2):
        return texts
    return [
        f"{value:.{decimals}f}" if abs(value) < LARGEST else text for value, text in zip(values, texts, strict=True)
    ]


def percent(share: float) -> str:
    """A share in whole percents, at most 999 of them."""
    if not math.isfinite(share):
        return "-"
    rounded = round(100 * share)
    return f"{rounded} %" if abs(rounded) < 1000 else f"{'below -' if rounded < 0 else 'above '}999 %"
