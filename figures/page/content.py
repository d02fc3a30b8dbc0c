"""What the report shows of runs: its tables, its figures, and what is computed for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import plotly.graph_objects as go

from drift.runs.run import Run
from figures.interactive.clients import client_points, learns, weights_rounds
from figures.interactive.curvature import curvature_rounds
from figures.interactive.curves import DRIFTS, curves, line_fma_ima
from figures.interactive.gains import gain_boxes
from figures.interactive.lines import written_name
from figures.looks import palette
from figures.page.diagnosis import diagnosis
from figures.page.named_figures import named_figures
from figures.page.pictures import KINDS, or_why, pictures
from figures.page.remembered_runs import Failed, JobProgress, PageProgress, Remembered
from figures.page.report_jobs import compute_jobs
from figures.page.sampled import Samples, subset_words
from figures.page.scene import scene
from figures.page.tables import configuration, cost_table, fingerprints, summary_table
from figures.selection.groups import groups
from figures.selection.identity import seed_text

Grouped = dict[str, list[Run]]
"""Runs that differ in their seed only, by the name of their method and settings."""


def content(
    runs: Sequence[Run],
    points: int,
    samples: Samples,
    progress: PageProgress,
    failed: Failed,
    figures: Sequence[str] = (),
    workers: int = 1,
    task: str | None = None,
) -> dict[str, Any]:
    """All values of the template; analyses of the runs that are not stored yet are computed.

    Args:
        points: Grid points per axis of a landscape.
        samples: Samples of landscapes and curvature at most.
        progress: Called with the number of runs done and the name of the present work.
        failed: Collects what could not be drawn.
        figures: Names of figures of the gallery that are shown as well.
        workers, task: As `figures.page.report_jobs.compute_parts` takes them.

    Raises:
        LookupError: If no run was given, or one has no complete round.
    """
    jobs_done = JobProgress(progress)
    grouped = groups([Remembered.wrap(run, jobs_done.of_analysis) for run in runs])
    compute_jobs(grouped, points, samples, jobs_done, workers=workers, task=task)
    progress(len(runs), "writing")
    shown = _shown(grouped, points, samples, failed)
    named = named_figures(figures, [run for group in grouped.values() for run in group], failed)
    sections = [section for section in shown["sections"] if figures or section[1] != "named"]
    return {**shown, "named": named, "sections": sections}


def without_data(runs: Sequence[Run]) -> str:
    """What the page does not show of runs that were recorded without their data, and what adds it; "" without any."""
    names = [run.name for run in runs if run.without_data]
    if not names:
        return ""
    return (
        f"{', '.join(names)}: recorded without {'its' if len(names) == 1 else 'their'} data. The page shows what the "
        "record says; what evaluates a model (planes, paths, curvature, cost) is left out. To add it, give model, loss "
        "and data: --task FILE.py:FUNCTION."
    )


def compact(figure: go.Figure) -> dict[str, Any]:
    """A figure as plain data and layout, without plotly's template and controls, which the page replaces by its own.

    A figure of several rounds also has `rounds`, their numbers, and either `owners`, for each trace the index of the
    round that shows it (-1: all rounds), or `frames`, the traces that each round replaces.
    """
    content: dict[str, Any] = json.loads(figure.to_json())
    layout = content["layout"]
    sliders, _, _ = (layout.pop(name, None) for name in ("sliders", "updatemenus", "template"))
    compacted = {"data": content["data"], "layout": layout}
    if not sliders:
        return compacted
    layout["margin"]["b"] = 48  # where its slider was
    steps = sliders[0]["steps"]
    compacted["rounds"] = [int(step["label"]) for step in steps]
    if frames := content.get("frames"):
        return {**compacted, "frames": [{"traces": frame["traces"], "data": frame["data"]} for frame in frames]}
    visible = [step["args"][0]["visible"] for step in steps]
    once = [[index for index, row in enumerate(visible) if row[trace]] for trace in range(len(content["data"]))]
    compacted["owners"] = [rows[0] if len(rows) == 1 else -1 for rows in once]
    return compacted


def _shown(grouped: Grouped, points: int, samples: Samples, failed: Failed) -> dict[str, Any]:
    runs = [run for group in grouped.values() for run in group]
    single = {name: pictures(group[0], samples, failed) for name, group in grouped.items()}
    curves = _curves(grouped, samples, failed)
    by_run = {f"{kind}:{name}": figure for name, by_kind in single.items() for kind, figure in by_kind.items()}
    figures = {
        name: {"absent": figure} if isinstance(figure, str) else compact(figure)
        for name, figure in {**curves, **by_run}.items()
    }
    diagnosed = {
        name: or_why(partial(diagnosis, group[0]), f"diagnosis of {group[0].name}", failed)
        for name, group in grouped.items()
    }
    stage = scene(grouped, points, samples, failed)
    for run in stage["runs"]:
        answers = diagnosed[run["key"]]
        run["verdict"] = "" if isinstance(answers, str) else answers["verdict"]
    kinds = [kind for kind in KINDS if any(not isinstance(by_kind[kind], str) for by_kind in single.values())]
    lacking = {kind: str(by_kind[kind]) for by_kind in single.values() for kind in KINDS if kind not in kinds}
    return {
        "title": "; ".join(dict.fromkeys(run.task_name for run in runs)),
        "number": len(runs),
        "methods": [(written_name(name), palette.colour(name.partition(",")[0])) for name in grouped],
        "runs": [(name, written_name(name), seed_text(group[0])) for name, group in grouped.items()],
        "kinds": kinds,
        "lacking": lacking,
        "failed": failed.reasons,
        "without_data": without_data(runs),
        "summary": summary_table(grouped, samples),
        "sampled": {split: subset_words(runs, split, samples) for split in ("test", "train")},
        "diagnoses": [(written_name(name), group[0], diagnosed[name]) for name, group in grouped.items()],
        "drifts": [(f"drift-{name}", _CAPTIONS[name]) for name in DRIFTS],
        "sections": [section for section in _SECTIONS if section[1] != "curvature" or "curvature" in figures],
        "has": {name: name in figures for name in ("weights", "line", "curvature")},
        "cost": cost_table(grouped),
        "configuration": configuration(grouped),
        "fingerprints": fingerprints(grouped),
        "figures": figures,
        "scene": stage,
    }


def _curves(grouped: Grouped, samples: Samples, failed: Failed) -> dict[str, go.Figure | str]:
    """All figures over rounds, by name, without those for which no run kept enough; a reason where one fails."""
    runs = [run for group in grouped.values() for run in group]
    make: dict[str, Callable[[], go.Figure]] = {
        **{name: partial(curves, runs, name) for name in ("accuracy", "loss", "end_norm")},
        **{f"drift-{name}": partial(curves, runs, name) for name in DRIFTS},
        "clients": lambda: client_points(runs),
        "gains": lambda: gain_boxes(runs),
    }
    if any(learns(run) for run in runs):
        make["weights"] = lambda: weights_rounds(runs)
    if any(len(run.kept("globals")) >= 2 and not run.without_data for run in runs):
        make["line"] = lambda: line_fma_ima(runs)
    if any(run.kept("globals") and not run.without_data for run in runs):
        make["curvature"] = lambda: curvature_rounds(runs, samples=samples)
    return {name: or_why(figure, name, failed) for name, figure in make.items()}


_SECTIONS = (
    *((name, name.lower()) for name in ("Summary", "Diagnosis", "Accuracy", "Landscape", "Drift", "Weights")),
    ("Figures", "named"),
    *((name, name.lower()) for name in ("Curvature", "Cost", "Configuration")),
    ("Seeds, versions and digests", "versions"),
)
"""Headings of the page and their places in it."""

_CAPTIONS = {
    "client_variance": "Client drift: how much the updates of one round differ from their mean, per parameter.",
    "change_variance": "Update change: how much a round's mean update differs from the one expected, per parameter.",
    "gain": "Kalman gain: the trust that FedEve's fusion would put in this round's update (1: all).",
    "coherence": "Local gradient coherence: how far the clients of a round pull in one direction; at or below 0 they "
    "do not.",
}
