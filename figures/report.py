"""The report: one self-contained page about several runs, to be opened anywhere without a network."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from drift.run import Run
from drift.terrain import round_plane, spread
from figures import palette
from figures.explore_clients import client_points, learns, weights_rounds
from figures.explore_curves import DRIFTS, curves, line_fma_ima, written_name
from figures.explore_surfaces import surface_rounds
from figures.report_tables import configuration, fingerprints, shown, summary_table
from figures.summary import groups, has_planes, summary

Progress = Callable[[float, str], None]
"""(runs done, with the fraction of the one at work; what is done now) -> None."""

ROUNDS = 5
"""Rounds of a landscape's slider."""

NUMBERS = 6
"""Landscapes that take as long as the numbers of the summary's table (measured on the demo)."""

TEMPLATES = Path(__file__).resolve().parent / "templates"


def report(
    runs: Sequence[Run], path: str | Path = "report.html", *, points: int = 15, progress: Progress | None = None
) -> Path:
    """Write a page with the landscapes, the drift, the numbers and the settings of runs; its path.

    Nothing is loaded when it is opened: plotly's script, data and looks are inside. Analyses are taken from the
    runs' folders, or computed and kept there. The file appears when it is complete.

    Args:
        runs: Any runs; those that differ in their seed only are summarised as one method.
        path: File to write; its folder is made.
        points: Grid points an axis of a landscape.
        progress: Called with the number of runs analysed, out of len(runs), and what is done. A run that is
            analysed counts by its finished parts: landscapes, numbers, curves.

    Raises:
        LookupError: If no run was given, or one has no complete round.
        ValueError: If the file cannot be written, or points is below 2; before anything is computed.
    """
    path, report_progress = Path(path), progress or (lambda done, note: None)
    if points < 2:
        raise ValueError(f"points is {points}; a landscape needs 2 or more an axis.")
    grouped = groups(runs)
    fresh = _reserved(path)
    try:
        content = _content(grouped, points, report_progress)
        fresh.write_text(page(content), encoding="utf-8")
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    return path


def page(content: dict[str, Any]) -> str:
    """The page as text, from what the template shows."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    figures = _script_safe(json.dumps(content["figures"], separators=(",", ":"), allow_nan=False))
    parts = {name: (TEMPLATES / f"report.{name}").read_text(encoding="utf-8") for name in ("css", "js")}
    template = environment.get_template("report.html.j2")
    return template.render(**{**content, "figures": figures}, **parts, plotly=get_plotlyjs())


def compact(figure: go.Figure) -> dict[str, Any]:
    """A figure as plain data and layout, without plotly's template: the page has its own, light and dark."""
    content: dict[str, Any] = json.loads(figure.to_json())
    content["layout"].pop("template", None)
    return {"data": content["data"], "layout": content["layout"]}


def _content(grouped: dict[str, list[Run]], points: int, progress: Progress) -> dict[str, Any]:
    """Everything that the template names."""
    surfaces, without = _analysed(grouped, points, progress)
    runs = [run for group in grouped.values() for run in group]
    found = _curves(runs)
    return {
        "title": _title(runs),
        "methods": [(written_name(name), palette.colour(name.partition(",")[0])) for name in grouped],
        "summary": summary_table(grouped),
        "landscapes": [(name, written_name(name), grouped[name][0].experiment.seed) for name in surfaces],
        "without": without,
        "drifts": [(f"drift-{name}", _CAPTIONS[name]) for name in DRIFTS],
        "has": {name: name in found for name in ("weights", "line")},
        "configuration": configuration(grouped),
        "fingerprints": fingerprints(grouped),
        "figures": {
            **{name: compact(figure) for name, figure in found.items()},
            **{
                f"{kind}:{name}": compact(surface_rounds(planes, flat=kind == "contour"))
                for name, planes in surfaces.items()
                for kind in ("surface", "contour")
            },
        },
    }


def _analysed(grouped: dict[str, list[Run]], points: int, progress: Progress) -> tuple[dict[str, list[Any]], list[str]]:
    """Planes of an early to the last round of one run of every method; the methods that kept too little for it.

    All else that the page needs of a run is computed with them, run by run so that progress can be told; tables and
    curves then find it in the runs' folders.
    """
    surfaces: dict[str, list[Any]] = {}
    without, done = [], 0
    for name, group in grouped.items():
        for run in group:
            rounds = spread(_planar(run), ROUNDS) if run is group[0] and has_planes(run) else []
            marks = [done + mark / (len(rounds) + NUMBERS + 1) for mark in range(len(rounds) + 1)]
            late = done + (len(rounds) + NUMBERS) / (len(rounds) + NUMBERS + 1)
            progress(done, run.name)
            planes = [
                _heard(run, progress, begin, end, share=1.0).cached(round_plane, round=index, points=points)
                for index, (begin, end) in zip(rounds, pairwise(marks), strict=True)
            ]
            summary([_heard(run, progress, marks[-1], late)])
            _curves([_heard(run, progress, late, done + 1)])
            if planes:
                surfaces[name] = planes
            done += 1
        if name not in surfaces:
            without.append(written_name(name))
    progress(done, "writing")
    return surfaces, without


def _heard(run: Run, progress: Progress, begin: float, end: float, *, share: float = 0.5) -> Run:
    """The run, whose analyses lead the work from `begin` to `end`.

    How many there are is not known, so each of them takes the same share of what is left.
    """

    def hear(steps: int, total: int) -> None:
        nonlocal begin
        reached = begin + share * (end - begin) * steps / max(total, 1)
        progress(reached, f"{steps} of {total}")
        begin = reached if steps == total else begin

    return run.with_progress(hear)


def _planar(run: Run) -> list[int]:
    """Rounds that kept three clients or more."""
    return [index for index in run.kept("clients") if len(run.round(index).ids) >= 3]


def _curves(runs: list[Run]) -> dict[str, go.Figure]:
    """All figures over rounds, by name."""
    found = {name: curves(runs, name) for name in ("accuracy", "loss")}
    found |= {f"drift-{name}": curves(runs, name) for name in DRIFTS}
    found["clients"] = client_points(runs)
    if any(learns(run) for run in runs):
        found["weights"] = weights_rounds(runs)
    if any(len(run.kept("globals")) >= 2 for run in runs):
        found["line"] = line_fma_ima(runs)
    return found


_CAPTIONS = {
    "client_variance": "Client drift: how much the updates of one round differ from their mean, per parameter.",
    "period_variance": "Period drift: how much a round's mean update differs from the one expected, per parameter.",
    "gain": "Kalman gain: the trust that FedEve's fusion would put in this round's update (1: all).",
    "coherence": "Local gradient coherence: how far the clients of a round pull in one direction; at or below 0 they "
    "do not.",
}


def _title(runs: list[Run]) -> str:
    tasks = dict.fromkeys(f"{run.experiment.task.dataset}, {run.experiment.task.model}" for run in runs)
    return "; ".join(tasks)


def _script_safe(text: str) -> str:
    """JSON that cannot end the script element it stands in."""
    return (
        text.replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )


def _reserved(path: Path) -> Path:
    """An empty file beside `path`, to be renamed to it.

    Raises:
        ValueError: If it cannot be made.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file to write, such as {path / 'report.html'}.")
    fresh = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(b"")
    except OSError as reason:
        problem = reason.strerror or reason
        raise ValueError(f"cannot write {path}: {problem}; give a file in a folder that can be written.") from None
    return fresh
