"""fedscape diagnose: what drifts in a run, why, and what would help, as one screen of text."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Annotated

from figures.commands.opening import HERE, RunSource
from figures.commands.options import Json, Memory, RunName, Workers, flag
from figures.page.diagnosis_text import QUESTIONS, answer, brackets, extent, interval, number, percent, verdict
from figures.texts import console

if TYPE_CHECKING:
    from drift.diagnosis.causes import Cause
    from drift.diagnosis.diagnose import Diagnosis
    from drift.diagnosis.finding import Finding

WIDTH, INDENT = 100, 26


def diagnose(
    run: RunName,
    /,
    *,
    quick: Annotated[bool, flag("--quick")] = False,
    source: RunSource = HERE,
    workers: Workers = 1,
    memory: Memory = None,
    json: Json = False,
) -> None:
    """Find the faults of a run, test remedies, and name figures to look at.

    The tests train rounds of the run again with one change each; --quick leaves them out.

    Example: `fedscape diagnose fedavg-digits --quick`

    Args:
        quick: Use only the record of the run; no round is trained again.
    """
    diagnosed = source.open(run)
    from drift.diagnosis.diagnose import diagnose as diagnosis
    from drift.store.memory_budget import limited

    with limited(memory), console.stages(f"diagnosing {diagnosed.name}") as stage:
        result = diagnosis(diagnosed.with_progress(stage, console.say), quick=quick, workers=workers)
    console.answer(screen(result), result.to_dict(), json=json)


def screen(diagnosis: Diagnosis) -> list[str]:
    """A diagnosis as lines of at most 100 columns; commands may be longer, so that they can be copied."""
    head = f"{extent(diagnosis)}; {_measured(diagnosis)}"
    lines = [diagnosis.run, head, "", *textwrap.wrap(verdict(diagnosis), WIDTH)]
    followed = [cause for cause in diagnosis.causes if cause.followed]
    if diagnosis.causes:
        title = "FOLLOWED (clear: every seed gains, beyond another seed)"
        lines += ["", f"{title:<55}{'GAIN [INTERVAL]':<29}{'OF LOSS':>8}  CLEAR"]
        for cause in followed:
            lines += _of_cause(cause)
        rest = ", ".join(cause.title for cause in diagnosis.causes if not cause.followed)
        lines += _detail(f"Tried in short windows only, with less or no gain: {rest}")[:3] if rest else []
    lines += ["", "STATE"]
    for finding in diagnosis.findings:
        lines += _of_finding(finding)
    return [*lines, *textwrap.wrap(f"{brackets()} To see a figure: fedscape figures draw NAME RUN", WIDTH)]


def _measured(diagnosis: Diagnosis) -> str:
    """Test loss and error of the last evaluated round, as far as the run records them."""
    unit = "" if diagnosis.loss_units == "1" else f" {diagnosis.loss_units}"
    loss = [f"loss {number(diagnosis.loss, 3)}{unit}"] if not math.isnan(diagnosis.loss) else []
    error = [f"error {number(100 * diagnosis.error, 3)} %"] if math.isfinite(diagnosis.error) else []
    return f"test {', '.join(loss + error)}" if loss or error else "no test loss or error recorded"


def _of_cause(cause: Cause) -> list[str]:
    gain = interval(cause.gain.value, cause.gain.low, cause.gain.high)
    lines = [f"  {cause.title:<53}{gain:<29}{percent(cause.share):>8}  {'yes' if cause.clear else 'no'}"]
    if not (cause.clear or cause.note):
        return lines
    placebo = f"another seed alone {number(cause.placebo)} nats"
    lines += _detail("; ".join(text for text in (cause.test, cause.followed, placebo, cause.note) if text))
    return [*lines, f"    {cause.command}"] if cause.clear or cause.change.startswith("without-") else lines


def _detail(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


def _of_finding(finding: Finding) -> list[str]:
    first = f"  {QUESTIONS.get(finding.name, finding.name):<{INDENT - 2}}"
    statement, value = answer(finding)
    text = f"{'; '.join(filter(None, (statement.rstrip('.'), value)))} (figure {finding.figure})"
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * INDENT, break_on_hyphens=False)
