"""fedscape diagnose: what drifts in a run, why, and what would help, on one screen."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from figures import console
from figures.commands.options import Data, Json, Runs, Task, Workers, opened
from figures.diagnosis_words import QUESTIONS, interval, percent, verdict

if TYPE_CHECKING:
    from drift.causes import Cause
    from drift.diagnosis import Diagnosis
    from drift.findings import Finding

Quick = Annotated[bool, Parameter(name="--quick", negative="", help="Read the record only; nothing is trained.")]

WIDTH, INDENT = 100, 26


def diagnose(
    run: str,
    /,
    *,
    quick: Quick = False,
    runs: Runs = Path("runs"),
    data: Data = None,
    task: Task = None,
    workers: Workers = 1,
    json: Json = False,
) -> None:
    """Say what is wrong with a run, test what would help, and name the figures to look at.

    Args:
        run: Folder of a run, or its name or the beginning of it inside --runs.
    """
    from drift.diagnosis import diagnose as diagnosis

    found = opened(run, runs, data, task)
    with console.parts(f"diagnosing {found.name}") as part:
        result = diagnosis(found.with_progress(part, console.say), quick=quick, workers=workers)
    if json:
        console.put_json(result.to_dict())
        return
    for line in screen(result):
        console.put(line)


def screen(found: Diagnosis) -> list[str]:
    """A diagnosis as lines of at most 100 columns."""
    head = f"{found.rounds} rounds, {found.per_round} of {found.clients} clients a round"
    lines = [found.run, f"{head}; test loss {found.loss:.3g} nats, error {100 * found.error:.1f} %", ""]
    lines += _wrapped(verdict(found))
    if found.causes:
        title = "POSSIBLE CAUSES (rounds played again with one change)"
        lines += ["", f"{title:<55}{'GAIN [95 %]':<29}{'OF LOSS':>8}  CLEAR"]
        for cause in found.causes:
            lines += _of_cause(cause)
    lines += ["", "STATE"]
    for finding in found.findings:
        lines += _of_finding(finding)
    return [
        *lines,
        "",
        "Gains in nats of test loss, [95 % interval]. To see a figure: fedscape figures draw NAME RUN",
    ]


def _of_cause(cause: Cause) -> list[str]:
    gain = interval(cause.gain.value, cause.gain.low, cause.gain.high)
    lines = [f"  {cause.title:<53}{gain:<29}{percent(cause.share):>8}  {'yes' if cause.clear else 'no'}"]
    detail = "; ".join(text for text in (cause.test, cause.note) if text)
    return [*lines, *_detail(detail)]


def _detail(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


def _of_finding(finding: Finding) -> list[str]:
    first = f"  {QUESTIONS.get(finding.name, finding.name):<{INDENT - 2}}"
    said = finding.statement + (f". Try: {finding.suggestion}" if finding.suggestion else "")
    lines = textwrap.wrap(said, WIDTH, initial_indent=first, subsequent_indent=" " * INDENT)
    number = ""
    if math.isfinite(finding.value):
        number = f"{finding.measure} {interval(finding.value, finding.low, finding.high, finding.unit)}"
    detail = [number, "tested" if finding.tested else "", f"figure {finding.figure}"]
    return [*lines, *_detail(", ".join(filter(None, detail)))]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH)
