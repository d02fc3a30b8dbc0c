"""The scene of the stage: runs, their curves and their landscapes as plain values, for a page or a server.

Numbers of a grid or a curve are float32 in base64 (`figures.page.packed`); a number that is not finite is None.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr

from drift.analyses.per_round import evenly_spaced
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.critical_point import critical_point
from drift.analyses.rounds.numbers import OF_RECORD, quantity
from drift.analyses.rounds.run_state import run_state
from drift.methods.ima import IMA
from drift.runs.run import Run
from drift.simulation.compare import mean_of_last
from figures.axes import relief
from figures.axes.units import ABSENT
from figures.interactive.curves import number
from figures.interactive.lines import written_name
from figures.looks import palette
from figures.looks.style import SEQUENTIAL
from figures.page.packed import finite, packed
from figures.page.pictures import or_why
from figures.page.remembered_runs import Failed, Job, Remembered
from figures.page.run_labels import run_labels
from figures.page.sampled import Samples
from figures.page.stage_round import missing, stage_round
from figures.page.tables import configuration
from figures.page.why import TERMS
from figures.selection.identity import seed_text

ROUNDS = 10
"""Rounds of a run whose landscape is on the stage at most, evenly spaced among those that kept three clients."""

LAST = 10
"""Last rounds of which the accuracy of a run is the mean."""

SERIES = ("accuracy", "loss", "client_variance", "change_variance", "mean_cosine", "gain")
"""Numbers of every round on the time line, where a run has them."""

Detail = Callable[[str, list[Run]], dict[str, Any]]
"""(name of a group, its runs) -> what a page knows of it beside `scene`'s own."""


def scene(grouped: Mapping[str, list[Run]], detail: Detail, last: Callable[[list[Run]], str]) -> dict[str, Any]:
    """Everything that the stage shows.

    Args:
        grouped: Runs that differ in their seed only, by name; the stage shows the first of each.
        detail: Of a group: accuracy, series, events, note and shown, the value of `stage_round` by round. `sent` for a
            page that is sent; a live page computes landscapes when they are looked at.
        last: What an accuracy is the mean of, in words, of the first runs of all groups.

    Returns:
        title, classes, unit (of losses), last (what an accuracy is the mean of), series (words, unit and whether the
        axis is logarithmic, by name), terms (meanings by term), colours (256 x 3 bytes each in base64: values,
        differences), relief (constants of its light and camera), levels (their number), and runs: key, label, full
        (the label with all settings), colour, dash, seeds, settings in which runs differ, rounds, and their detail.
    """
    differing = configuration(grouped)["differing"]["rows"] if grouped else []
    first = [group[0] for group in grouped.values()]
    texts = [(setting, ["" if value == ABSENT else value for value in values]) for setting, values in differing]
    labels, runs = run_labels([palette.label(run.label) for run in first], texts), []
    for row, (name, group) in enumerate(grouped.items()):
        variant = [run.label for run in first[:row]].count(group[0].label)
        settings = [(setting, values[row]) for setting, values in texts if values[row]]
        known = {"key": name, "label": labels[row], **_run(name, group, variant), "settings": settings}
        runs.append({**known, **detail(name, group)})
    return {
        "title": "; ".join(dict.fromkeys(run.task_name for run in first)),
        "classes": next(filter(None, map(_classes, first)), []),
        "unit": first[0].loss_units if first else "",
        "last": last(first) if first else "",
        "series": {name: asdict(quantity(name)) for name in SERIES},
        "terms": TERMS,
        "class_colours": palette.CLASSES,
        "colours": {"value": _colours(SEQUENTIAL), "difference": _colours(palette.SIGNED)},
        "relief": {
            name: getattr(relief, name.upper()) for name in ("azimuth", "elevation", "light", "tall", "drop", "lift")
        },
        "levels": relief.COUNT,
        "runs": runs,
    }


def sent(points: int, samples: Samples, failed: Failed) -> Detail:
    """The detail of a page that is sent, with landscapes of at most `ROUNDS` rounds.

    Args:
        points, samples: Of a landscape, as `figures.page.report` takes them.
        failed: Collects the landscapes that could not be computed.
    """

    def detail(name: str, group: list[Run]) -> dict[str, Any]:
        run, state = group[0], run_state(group[0])
        shown = {index: partial(_landscape, run, index, points, samples) for index in stage_rounds(run)}
        title = f"landscape of {run.name}, round"
        known = [name for name in SERIES if name in OF_RECORD or name in run.metrics()]
        lost = max(state.best, 0) if state.name == "diverged" else None
        return {
            "accuracy": finite(float(np.mean([mean_of_last(member, last=LAST) for member in group]))),
            "series": {name: packed_series(number(run, name), run.rounds()) for name in known},
            "events": events(run, run.cached(coherence).coherence, lost),
            "note": missing(run),
            "shown": {index: or_why(compute, f"{title} {index}", failed) for index, compute in shown.items()},
        }

    return detail


def stage_rounds(run: Run) -> list[int]:
    """Rounds whose landscape is on the stage; none where it cannot be computed."""
    return [] if missing(run) else evenly_spaced(run.kept("clients", least=3), ROUNDS)


def stage_jobs(run: Run, points: int, samples: Samples) -> list[Job]:
    """The jobs that compute the landscapes of a run on the stage."""
    compute = partial(_landscape, points=points, samples=samples)
    return [Job(f"landscape of round {index}", 1, partial(compute, index=index)) for index in stage_rounds(run)]


def _landscape(run: Run, index: int, points: int, samples: Samples) -> dict[str, Any]:
    """The value of `stage_round`; a run that remembers evaluates its models once."""
    compute = partial(stage_round, run, index, points, samples)
    value: dict[str, Any] = run.once(f"stage {index}", compute) if isinstance(run, Remembered) else compute()
    return value


def _run(name: str, group: list[Run], variant: int) -> dict[str, Any]:
    run = group[0]
    style = palette.dash(run.label, variant)
    return {
        "full": written_name(name),
        "colour": palette.colour(run.label),
        "dash": [] if style == "-" else list(style[1]),
        "seeds": list(map(seed_text, group)),
        "rounds": run.rounds(),
    }


def _classes(run: Run) -> list[str]:
    """Names of the classes, as they were recorded or as the user's own task has them."""
    return list(map(str, run.about.get("classes", []) if run.context.user_task is None else run.dataset.classes))


def packed_series(values: xr.DataArray, rounds: Sequence[int]) -> str:
    """A number over rounds, NaN where it has none."""
    return packed(values.reindex(round=list(rounds)).values)


def events(run: Run, series: xr.DataArray | None, lost: int | None) -> list[dict[str, Any]]:
    """Rounds at which something begins: the critical point, averaging, divergence.

    Args:
        run: The run.
        series: Its coherence over rounds, if that is known.
        lost: Round of the lowest loss of a run that diverged.
    """
    marks = list[tuple[int, str]]()
    if series is not None and not (point := critical_point(series["round"].values, series.values)).reason:
        words = f"critical point [{point.low:.0f}, {point.high:.0f}]: coherence is negative from here on"
        marks.append((int(point.round), words))
    if isinstance(run.experiment.method, IMA):
        marks.append((run.experiment.method.first_round(run.experiment.rounds), "averaging starts"))
    if lost is not None:
        marks.append((lost, "diverged: the loss was lowest here"))
    return [{"round": index, "words": words} for index, words in marks if index <= run.rounds()[-1]]


def _colours(name: str) -> str:
    table = np.rint(255 * mpl.colormaps[name](np.linspace(0, 1, 256))[:, :3]).astype(np.uint8)
    return base64.b64encode(table.tobytes()).decode("ascii")
