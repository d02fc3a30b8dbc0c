"""fedscape demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from figures import console
from figures.commands.options import OUT, Json, Workers, require_folder


def demo(*, out: Annotated[Path, OUT] = Path("out/demo"), workers: Workers = 2, json: Json = False) -> int:
    """Train five methods on real images, draw their figures and write the report.

    Example: `fedscape demo --out out/demo`

    Args:
        out: Folder for the runs, figures and report.
    """
    from figures.commands._demo_steps import BEYOND, COLUMNS, MUTE
    from figures.commands._demo_steps import demo as run_demo

    require_folder(out)
    result = run_demo(out, workers=workers)
    console.table(result.table, COLUMNS, json=json)
    for name, reason in result.left_out.items():
        console.say(f"figure {name} is left out: {reason}")
    console.say(
        f"figures: {result.figures} ({len(result.names)} as PDF, PNG and SVG, numbers beside)\n"
        f"         {len(BEYOND)} others take runs of other kinds: {', '.join(sorted(BEYOND))}\n"
        f"         {len(MUTE)} others have nothing to show of these runs: {', '.join(MUTE)}\n"
        f"runs:    {result.runs}\nreport:  {result.report} (open it in a browser)\n"
        f"took {result.seconds:.0f} s"
    )
    return 2 if result.left_out else 0
