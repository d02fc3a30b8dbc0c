"""What the report says is wrong with a run: the words of its diagnosis, as tables."""

from __future__ import annotations

import math
from typing import Any

from drift.diagnosis.causes import Cause
from drift.diagnosis.diagnose import Diagnosis, diagnose
from drift.diagnosis.finding import Finding
from drift.runs.run import Run
from figures.page.diagnosis_text import QUESTIONS, interval, percent, standing, verdict


def diagnosis(run: Run) -> dict[str, Any]:
    """The verdict on a run, the causes that were tested, and the answers that its record gives.

    Nothing is trained for it: causes are there where `fedscape diagnose` tested them before.

    Returns:
        verdict: A sentence. causes, state: Tables as `figures.page.tables` makes them; no rows where none was tested.
        untested: Whether they can and have not been tested.
    """
    found = _found(run)
    return {
        "verdict": verdict(found) if found.causes else _read(found),
        "causes": {
            "head": ["Cause", "Gain [95 %]", "Of the loss", "Clear", "Test", "To do"],
            "rows": _rows(found.causes),
        },
        "state": {"head": ["Question", "Answer", "Number [95 %]", "Gallery figure"], "rows": _answers(found.findings)},
        "untested": not found.causes and not run.about.get("unknown"),
    }


def _found(run: Run) -> Diagnosis:
    tested = any((run.folder / "results").glob("followed-*.zarr"))
    return diagnose(run, quick=not tested)


def _read(found: Diagnosis) -> str:
    """What a record says without a test, in one sentence."""
    said = {finding.name: finding.statement.partition(";")[0] for finding in found.findings}
    start = f"{standing(found)} " if standing(found) else ""
    told = [said[name] for name in _TELLING if name in said and not said[name].startswith("not known")]
    return f"{start}Read from the record: {'; '.join(told) or 'too little is known'}."


_TELLING = ("labels", "coherence", "clients")
"""Answers that stand in the headline of a diagnosis without tests."""


def _rows(causes: tuple[Cause, ...]) -> list[tuple[str, list[str]]]:
    rows = []
    for cause in causes:
        gain = interval(cause.gain.value, cause.gain.low, cause.gain.high, "nats")
        test = "; ".join(filter(None, (cause.test, cause.followed, cause.note)))
        command = cause.command if cause.clear else ""
        rows.append((cause.title, [gain, percent(cause.share), "yes" if cause.clear else "no", test, command]))
    return rows


def _answers(findings: tuple[Finding, ...]) -> list[tuple[str, list[str]]]:
    rows = []
    for finding in findings:
        said = finding.statement + (f". Try: {finding.suggestion}" if finding.suggestion else "")
        number = ""
        if math.isfinite(finding.value):
            number = f"{finding.measure} {interval(finding.value, finding.low, finding.high, finding.unit)}"
        rows.append((QUESTIONS.get(finding.name, finding.name), [said, number, finding.figure]))
    return rows
