"""fedscape demo."""

from pathlib import Path
from typing import Annotated

from figures.commands.options import OUT, Json, Workers
from figures.commands.requirements import require_folder
from figures.texts import console


def demo(*, out: Annotated[Path, OUT] = Path("out/demo"), workers: Workers = 2, json: Json = False) -> int:
    """Train four methods on real images, draw seven pictures and two of stored runs, and write the report.

    The first picture appears within half a minute.

    Example: `fedscape demo --out out/demo`

    Args:
        out: Folder for the runs, figures and report.
    """
    from figures.commands._demo_steps import COLUMNS
    from figures.commands._demo_steps import demo as run_demo

    require_folder(out)
    result = run_demo(out, workers=workers)
    console.table(result.table, COLUMNS, json=json)
    for name, reason in result.left_out.items():
        console.say(f"figure {name} is left out: {reason}")
    console.say(
        f"figures: {result.figures} ({len(result.names)} as PDF, PNG and SVG, with their numbers;\n"
        f"         and two named 300-rounds, of longer runs on Fashion-MNIST)\n"
        f"runs:    {result.runs} (one seed: a demonstration, not evidence)\n"
        f"report:  {result.report} (open it in a browser)\n"
        f"next:    fedscape compare demo --methods lss fedavg --seeds 8 9 10 --runs {result.runs}\n"
        f"         fedscape explore {result.runs}\n"
        f"         fedscape figures list (all figures, and the runs each of them needs)\n"
        f"took {result.seconds:.0f} s"
    )
    return 2 if result.left_out else 0
