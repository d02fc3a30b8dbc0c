"""The diagnosis of a run: what the record says."""

from typing import Any

from drift.diagnosis.causes import suspects
from drift.diagnosis.diagnose import diagnose
from drift.diagnosis.finding import Finding
from drift.diagnosis.findings import is_odd
from drift.diagnosis.outlying_clients import client_deviations
from drift.runs.run import Run
from figures.explore.ask import Ask
from figures.explore.work.shelf import Shelf
from figures.page.diagnosis import read_words
from figures.page.diagnosis_text import QUESTIONS, answer

_RESULTS = Shelf(256)
"""Diagnoses by run and its last round, for all pages."""


def diagnosis(ask: Ask, run: str) -> dict[str, Any]:
    """Diagnose a run, in a process of its own.

    Args:
        run: The run.

    Returns:
        verdict, a sentence; findings: name, title, text, number (with its interval), advice, figure (of the gallery),
        and client, an id or None, which it is about.

    Raises:
        LookupError: If the run has no complete round, or cannot be read.
    """
    opened = ask.run(run, -1)
    key = (str(opened.folder), opened.identity, opened.head)
    value: dict[str, Any] = _RESULTS.get(key, lambda: ask.long(diagnosed, opened, title=f"diagnosis of {run}"))
    return value


def diagnosed(run: Run) -> dict[str, Any]:
    """The diagnosis from the record, without training; in a process of its own."""
    result = diagnose(run, quick=True)
    try:
        deviations = run.cached(client_deviations)
        odd = [int(number) for number in deviations.client.values if is_odd(deviations.sel(client=number))]
        clients = list(dict.fromkeys([*suspects(deviations), *odd]))
    except LookupError:  # nobody said which data its clients have
        clients = []
    return {"verdict": read_words(result), "findings": [_finding(finding, clients) for finding in result.findings]}


def _finding(finding: Finding, clients: list[int]) -> dict[str, Any]:
    return {
        "name": finding.name,
        "title": QUESTIONS.get(finding.name, finding.name),
        "text": finding.statement,
        "number": answer(finding)[1],
        "advice": finding.suggestion,
        "figure": finding.figure,
        "client": clients[0] if finding.name == "clients" and clients else None,
    }
