"""fedscape figures list, draw, gallery; fedscape report."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from figures import console
from figures.commands.options import Data, Folder, Json, Runs, Settings, Task, Workers, arguments, opened_all

figures = App(name="figures", help="Draw named figures from runs.")


@figures.command(name="list")
def list_(*, json: Json = False) -> None:
    """List the named figures."""
    from figures.gallery import names
    from landscape import plugins

    rows = [
        {"name": name, "description": plugins.describe("figures.gallery", name), "needs": _needs(name)}
        for name in names()
    ]
    console.table(rows, {"name": "figure", "description": "shows", "needs": "needs"}, json=json)


@figures.command
def draw(
    name: str,
    run: list[str],
    /,
    *,
    set: Settings = None,
    runs: Runs = Path("runs"),
    data: Data = None,
    task: Task = None,
    out: Folder = None,
) -> None:
    """Draw one figure as PDF, PNG and SVG, with its numbers beside it.

    Args:
        name: Which one: fedscape figures list.
        run: Runs by folder, name or beginning of a name; a folder of runs stands for all of them.
    """
    from figures.drawing import draw_one

    found = opened_all(run, runs, data, task)
    with console.parts(f"drawing {name}") as part:
        heard = [run.with_progress(part, console.say) for run in found]
        paths = draw_one(name, heard, out or Path("out/figures"), **arguments(set))
    for path in paths:
        console.put(str(path))


@figures.command
def gallery(
    run: list[str],
    /,
    *,
    runs: Runs = Path("runs"),
    data: Data = None,
    out: Folder = None,
    workers: Workers = 1,
) -> None:
    """Draw every figure that these runs allow.

    Args:
        run: Runs by folder, name or beginning of a name; a folder of runs stands for all of them.
    """
    from figures.drawing import Job, draw_all
    from figures.gallery import names

    found, folder = opened_all(run, runs, data), out or Path("out/figures")
    jobs: dict[str, Job] = {name: (found, {}) for name in names()}
    with console.progress("drawing", len(jobs)) as step:
        drawn = draw_all(jobs, folder, workers=workers, progress=step)
    for name, outcome in drawn.items():
        if isinstance(outcome, str):
            console.say(f"{name} is left out: {outcome}")
        else:
            console.put(str(outcome[0]))


def report(
    run: list[str],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="File to write.")] = Path("report.html"),
    runs: Runs = Path("runs"),
    data: Data = None,
    task: Task = None,
) -> None:
    """Write one self-contained interactive page about runs.

    Args:
        run: Runs by folder, name or beginning of a name; a folder of runs stands for all of them.
    """
    from figures.report import report as write

    found = opened_all(run, runs, data, task)
    with console.progress("writing the report", len(found)) as step:
        write(found, output, progress=step)
    console.put(str(output))


def _needs(name: str) -> str:
    """What runs a figure takes: NEEDS of its file, read from the source; nothing is imported."""
    folder = Path(__file__).resolve().parents[1] / "gallery"
    for node in ast.parse((folder / f"{name.replace('-', '_')}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "NEEDS":
            return str(ast.literal_eval(node.value))
    return ""
