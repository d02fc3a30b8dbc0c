"""The diagnosis of a run in the report, as tables."""

from typing import Any

from drift.analyses.over_seeds import INTERVAL
from drift.diagnosis.causes import Cause
from drift.diagnosis.diagnose import Diagnosis, diagnose
from drift.runs.run import Run
from figures.page.diagnosis_text import QUESTIONS, answer, brackets, interval, percent, standing, verdict
from figures.page.remembered_runs import Remembered


def diagnosis(run: Run) -> dict[str, Any]:
    """The verdict on a run, the causes that were tested, and the answers from its record.

    Nothing is trained: there are causes only where `fedscape diagnose` tested them before.

    Returns:
        verdict: A sentence. causes, state: Tables as `figures.page.tables` makes them; no rows where none was tested.
        note: What the intervals are.
        untested: Whether they can and have not been tested.
    """
    if isinstance(run, Remembered):
        return run.once("diagnosis", lambda: _diagnosis(run))
    return _diagnosis(run)


def _diagnosis(run: Run) -> dict[str, Any]:
    result = diagnose(run, quick=not any((run.folder / "results").glob("followed-*.nc")))
    answers = [(QUESTIONS.get(item.name, item.name), [*answer(item), item.figure]) for item in result.findings]
    return {
        "verdict": verdict(result) if result.causes else read_words(result),
        "causes": {
            "head": ["Cause", f"Gain [{INTERVAL}]", "Of the loss", "Clear", "Test", "To do"],
            "rows": _rows(result.causes),
        },
        "state": {"head": ["Question", "Answer", f"Number [{INTERVAL}]", "Gallery figure"], "rows": answers},
        "note": brackets(),
        "untested": not result.causes and not run.about.get("unknown"),
    }


def read_words(result: Diagnosis) -> str:
    """The answers from a record without tests, in one sentence."""
    statements = {finding.name: finding.statement.partition(";")[0] for finding in result.findings}
    known = [statements[name] for name in _TELLING if not statements.get(name, "not known").startswith("not known")]
    read = f"Read from the record: {'; '.join(known) or 'too little is known'}."
    return " ".join(filter(None, (standing(result), read)))


_TELLING = ("labels", "coherence", "clients")
"""Answers in the headline of a diagnosis without tests."""


def _rows(causes: tuple[Cause, ...]) -> list[tuple[str, list[str]]]:
    rows = []
    for cause in causes:
        gain = interval(cause.gain.value, cause.gain.low, cause.gain.high, "nats")
        test = "; ".join(filter(None, (cause.test, cause.followed, cause.note)))
        command = cause.command if cause.clear else ""
        rows.append((cause.title, [gain, percent(cause.share), "yes" if cause.clear else "no", test, command]))
    return rows
