"""The page that can be sent, of some runs."""

import base64
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drift.runs.run import Run
from figures.explore.ask import Ask
from figures.explore.work import stopping


def publish(ask: Ask, runs: list[str], address: str = "", what_if: dict[str, Any] | None = None) -> dict[str, Any]:
    """This page as one file, as `fedscape publish` makes it but for tables, curves and figures.

    Args:
        runs: Names of runs, with all seeds.
        address: Of the stage: the page opens there, with these landscapes.
        what_if: What weights of the clients in that address gave, as the stage writes it.

    Returns:
        name of the file, base64 of it, and failed: what could not be drawn, a line each.

    Raises:
        LookupError: If no run is given, or one has no complete round.
    """
    opened = [ask.run(name, -1) for name in runs]
    if not opened:
        raise LookupError("no run is given; tick one.")
    value: dict[str, Any] = ask.long(published, opened, address, what_if, title="the page to send")
    return value


def published(runs: Sequence[Run], address: str, what_if: dict[str, Any] | None) -> dict[str, Any]:
    """The page; in a process of its own."""
    from figures.page.remembered_runs import Failed
    from figures.page.report import report

    failed, parts = Failed(), 100
    step = lambda done, note: stopping.step(round(parts * done), parts * len(runs))  # noqa: E731
    opened = [run.with_progress(None) for run in runs]
    begins: dict[str, Any] = {"address": address, "what_if": what_if}
    with tempfile.TemporaryDirectory() as folder:
        path = report(opened, Path(folder) / "p.html", figures=None, progress=step, failed=failed, **begins)
        content = base64.b64encode(path.read_bytes()).decode("ascii")
    return {"name": "fedscape.html", "base64": content, "failed": [" ".join(line) for line in failed.reasons.items()]}
