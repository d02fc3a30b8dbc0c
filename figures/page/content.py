"""What the report shows of runs: its tables, its figures, and what is computed for them."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import plotly.graph_objects as go

from drift.runs.run import Run
from drift.simulation.compare import last_words
from figures.interactive.curves import DRIFTS, curves
from figures.looks import palette
from figures.page.carried_models import with_models
from figures.page.charts import CHARTS, MAP, stored
from figures.page.configuration import configuration
from figures.page.diagnosis import diagnosis
from figures.page.named_figures import page_figures
from figures.page.pictures import or_why, trajectory
from figures.page.remembered_runs import Failed, JobProgress, PageProgress, Remembered
from figures.page.report_jobs import compute_jobs
from figures.page.sampled import Samples, subset_words
from figures.page.scene import LAST, scene
from figures.page.sent_scene import sent
from figures.page.start import Start
from figures.page.tables import cost_table, fingerprints, summary_table
from figures.selection.groups import groups, written_name
from figures.selection.identity import seed_text

Grouped = dict[str, list[Run]]
"""Runs that differ in their seed only, by the name of their method and settings."""


def content(
    runs: Sequence[Run],
    start: Start,
    samples: Samples,
    progress: PageProgress,
    failed: Failed,
    figures: Sequence[str] = (),
    workers: int = 1,
    task: str | None = None,
) -> dict[str, Any]:
    """All values of the template; analyses of the runs that are not stored yet are computed.

    Args:
        start: Where the page begins, and its landscapes.
        samples: Samples of all other numbers at most.
        progress: Called with the number of runs done and the name of the present work.
        failed: Collects what could not be drawn.
        figures: Names of figures of the gallery that are shown as well.
        workers, task: As `figures.page.report_jobs.compute_parts` takes them.

    Raises:
        LookupError: If no run was given, or one has no complete round.
    """
    jobs_done = JobProgress(progress)
    grouped = groups([Remembered.wrap(run, jobs_done.of_analysis) for run in runs])
    grouped = {name: sorted(group, key=lambda run: run.name not in start.seeds) for name, group in grouped.items()}
    compute_jobs(grouped, start, samples, jobs_done, workers=workers, task=task)
    progress(len(runs), "writing")
    diagnosed = {
        name: or_why(partial(diagnosis, group[0]), f"diagnosis of {group[0].name}", failed)
        for name, group in grouped.items()
    }
    stage: dict[str, Any] = {"scene": _stage(grouped, start, diagnosed, failed), "sections": []}
    stage |= {"title": stage["scene"]["title"], "number": len(runs), "failed": failed}
    if start.alone:
        return stage
    sections_shown = page_figures(figures, [run for group in grouped.values() for run in group], samples, failed)
    sections = [section for section in _SECTIONS if sections_shown["named"] or section[1] != "named"]
    return {**stage, **_shown(grouped, samples, diagnosed, failed), "drawn": sections_shown, "sections": sections}


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

    A figure of several rounds also has `rounds`, their numbers, and `frames`, the traces that each round replaces.
    """
    content: dict[str, Any] = json.loads(figure.to_json())
    layout = content["layout"]
    sliders, _, _ = (layout.pop(name, None) for name in ("sliders", "updatemenus", "template"))
    compacted = {"data": content["data"], "layout": layout}
    if not sliders:
        return compacted
    layout["margin"]["b"] = 48  # where its slider was
    frames = [{"traces": frame["traces"], "data": frame["data"]} for frame in content["frames"]]
    return {**compacted, "rounds": [int(step["label"]) for step in sliders[0]["steps"]], "frames": frames}


def _stage(grouped: Grouped, start: Start, diagnosed: Mapping[str, Any], failed: Failed) -> dict[str, Any]:
    """The scene, with the models that it carries."""
    shown = scene(grouped, sent(start, failed), lambda first: last_words(first, LAST))
    for run in shown["runs"]:
        answers = diagnosed[run["key"]]
        run["verdict"] = "" if isinstance(answers, str) else answers["verdict"]
        run["charts"] = {name: _stored(grouped[run["key"]][:1], name, failed) for name in CHARTS}
    shown["models"] = _stored([group[0] for group in grouped.values()], MAP, failed)
    about = {"start": start.address, "split": start.how["split"], "what_if": start.what_if}
    return with_models(shown, grouped, start) | about


def _stored(runs: list[Run], figure: str, failed: Failed) -> dict[str, Any] | str:
    """The data of a figure, or why there is none; runs that differ in their model have no map."""
    return or_why(partial(stored, runs, figure), f"{figure} of {runs[0].name}", failed, refused=ValueError)


def _shown(grouped: Grouped, samples: Samples, diagnosed: Mapping[str, Any], failed: Failed) -> dict[str, Any]:
    runs = [run for group in grouped.values() for run in group]
    paths = {
        f"trajectory:{name}": or_why(partial(trajectory, group[0], samples), f"path of {group[0].name}", failed)
        for name, group in grouped.items()
    }
    names = ("accuracy", "loss", "end_norm", *(f"drift-{name}" for name in DRIFTS))
    over_rounds = {name: or_why(partial(curves, runs, name.removeprefix("drift-")), name, failed) for name in names}
    lacking = [figure for figure in paths.values() if isinstance(figure, str)]
    figures = {
        name: {"absent": figure} if isinstance(figure, str) else compact(figure)
        for name, figure in {**over_rounds, **paths}.items()
    }
    return {
        "methods": [(written_name(name), palette.colour(name.partition(",")[0])) for name in grouped],
        "runs": [(name, written_name(name), seed_text(group[0])) for name, group in grouped.items()],
        "lacking": lacking[0] if len(lacking) == len(paths) else "",
        "without_data": without_data(runs),
        "summary": summary_table(grouped, samples),
        "sampled": {split: subset_words(runs, split, samples) for split in ("test", "train")},
        "diagnoses": [(written_name(name), group[0], diagnosed[name]) for name, group in grouped.items()],
        "drifts": [(f"drift-{name}", _CAPTIONS[name]) for name in DRIFTS],
        "cost": cost_table(grouped),
        "configuration": configuration(grouped),
        "fingerprints": fingerprints(grouped),
        "figures": figures,
    }


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
