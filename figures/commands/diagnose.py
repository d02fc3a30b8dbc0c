"""fedscape diagnose: what drifts in a run, why, and what would help, on one screen."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from figures import console
from figures.commands.options import Data, Json, Runs, Workers, opened

if TYPE_CHECKING:
    from drift.causes import Cause
    from drift.diagnosis import Diagnosis
    from drift.findings import Finding

Quick = Annotated[bool, Parameter(name="--quick", negative="", help="Read the record only; nothing is trained.")]

WIDTH, INDENT = 100, 26
QUESTIONS = {
    "centre": "centre of the basin",
    "error": "largest error part",
    "drift": "period or client drift",
    "coherence": "coherence of clients",
    "shrink": "shrinking the model",
    "clients": "clients that differ",
    "training": "training itself",
}


def diagnose(
    run: str,
    /,
    *,
    quick: Quick = False,
    runs: Runs = Path("runs"),
    data: Data = None,
    workers: Workers = 1,
    json: Json = False,
) -> None:
    """Say what is wrong with a run, test what would help, and name the figures to look at.

    Args:
        run: Folder of a run, or its name or the beginning of it inside --runs.
    """
    from drift.diagnosis import diagnose as diagnosis

    found = opened(run, runs, data)
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
    lines += _wrapped(_verdict(found))
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


def _verdict(found: Diagnosis) -> str:
    first = found.first
    if first is not None:
        gained = f"{first.gain.value:.2g} nats" if first.gain.value >= 0 else "no loss within so few rounds"
        said = f"First cause: {first.title} ({gained} gained by: {first.test}). Look at figure {first.figure}."
    elif found.untested:
        said = f"Causes were not tested: {found.untested}. What follows is read from the record."
    else:
        said = "No clear cause: no tested change gains clearly."
    return f"{'Training broke down. ' if found.broken else ''}{said}"


def _of_cause(cause: Cause) -> list[str]:
    gain = _interval(cause.gain.value, cause.gain.low, cause.gain.high)
    lines = [f"  {cause.title:<53}{gain:<29}{_percent(cause.share):>8}  {'yes' if cause.clear else 'no'}"]
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
        number = f"{finding.measure} {_interval(finding.value, finding.low, finding.high, finding.unit)}"
    detail = [number, "tested" if finding.tested else "", f"figure {finding.figure}"]
    return [*lines, *_detail(", ".join(filter(None, detail)))]


def _interval(value: float, low: float, high: float, unit: str = "") -> str:
    if not math.isfinite(value):
        return "-"
    scale, sign, after = (100, "", " %") if unit == "fraction" else (1, "+", " nats" if unit == "nats" else "")
    ends = f" [{low * scale:{sign}.2g}, {high * scale:{sign}.2g}]" if math.isfinite(low) else ""
    return f"{value * scale:{sign}.2g}{ends}{after}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if math.isfinite(share) else "-"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH)
