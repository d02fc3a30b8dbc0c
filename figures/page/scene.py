"""The scene of the stage: runs, their curves and their landscapes as plain values, for a page or a server.

Numbers of a grid or a curve are float32 in base64 (`figures.page.packed`); a number that is not finite is None.
"""

from __future__ import annotations

import base64
from dataclasses import asdict
from functools import partial
from typing import Any

import matplotlib as mpl
import numpy as np

from drift.analyses.per_round import evenly_spaced
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.critical_point import critical_point
from drift.analyses.rounds.numbers import OF_RECORD, quantity
from drift.analyses.rounds.run_state import run_state
from drift.methods.ima import IMA
from drift.runs.run import Run
from drift.simulation.compare import last_words, mean_of_last
from figures.axes import relief
from figures.interactive.curves import number
from figures.interactive.lines import written_name
from figures.looks import palette
from figures.looks.style import SEQUENTIAL
from figures.page.packed import finite, packed
from figures.page.pictures import or_why
from figures.page.remembered_runs import Failed, Job, Remembered
from figures.page.sampled import Samples
from figures.page.stage_round import missing, stage_round
from figures.page.tables import configuration
from figures.page.why import TERMS
from figures.selection.identity import seed_text

ROUNDS = 10
"""Rounds of a run whose landscape is on the stage at most, evenly spaced among those that kept three clients."""

SERIES = ("accuracy", "loss", "client_variance", "change_variance", "mean_cosine", "gain")
"""Numbers of every round on the time line, where a run has them."""


def scene(grouped: dict[str, list[Run]], points: int, samples: Samples, failed: Failed) -> dict[str, Any]:
    """Everything that the stage shows.

    Args:
        grouped: Runs that differ in their seed only, by name; the stage shows the first of each.
        points, samples: Of a landscape, as `figures.page.report` takes them.
        failed: Collects the landscapes that could not be computed.

    Returns:
        title, classes, unit (of losses), series (words, unit and whether the axis is logarithmic, by name), terms
        (meanings by term), colours (256 x 3 bytes each in base64: values, differences), relief (constants of its
        light and camera), levels (their number), and runs: key, label, colour, dash, seeds, accuracy, settings,
        rounds, series, events, note, and shown, the value of `stage_round` by round.
    """
    differing = configuration(grouped)["differing"]["rows"]
    first = [group[0] for group in grouped.values()]
    runs = []
    for row, (name, group) in enumerate(grouped.items()):
        shown = {index: partial(_landscape, group[0], index, points, samples) for index in stage_rounds(group[0])}
        title = f"landscape of {group[0].name}, round"
        variant = [run.label for run in first[:row]].count(group[0].label)
        runs.append(
            {
                "key": name,
                **_run(name, group, variant),
                "settings": [(setting, values[row]) for setting, values in differing if values[row]],
                "shown": {index: or_why(compute, f"{title} {index}", failed) for index, compute in shown.items()},
            }
        )
    return {
        "title": "; ".join(dict.fromkeys(run.task_name for run in first)),
        "classes": next((list(map(str, run.dataset.classes)) for run in first if not run.without_data), []),
        "unit": first[0].loss_units,
        "last": last_words(first, 10),
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
    run, rounds = group[0], group[0].rounds()
    style = palette.dash(run.label, variant)
    series = {name: number(run, name) for name in SERIES if name in OF_RECORD or name in run.metrics()}
    return {
        "label": written_name(name),
        "colour": palette.colour(run.label),
        "dash": [] if style == "-" else list(style[1]),
        "seeds": list(map(seed_text, group)),
        "accuracy": finite(float(np.mean([mean_of_last(member) for member in group]))),
        "rounds": rounds,
        "series": {name: packed(values.reindex(round=rounds).values) for name, values in series.items()},
        "events": _events(run),
        "note": missing(run),
    }


def _events(run: Run) -> list[dict[str, Any]]:
    """Rounds at which something begins: the critical point, averaging, divergence."""
    series, state, events = run.cached(coherence).coherence, run_state(run), list[tuple[int, str]]()
    point = critical_point(series["round"].values, series.values)
    if not point.reason:
        words = f"critical point [{point.low:.0f}, {point.high:.0f}]: coherence is negative from here on"
        events.append((int(point.round), words))
    if isinstance(run.experiment.method, IMA):
        events.append((run.experiment.method.first_round(run.experiment.rounds), "averaging starts"))
    if state.name == "diverged":
        events.append((max(state.best, 0), "diverged: the loss was lowest here"))
    return [{"round": index, "words": words} for index, words in events if index <= run.rounds()[-1]]


def _colours(name: str) -> str:
    table = np.rint(255 * mpl.colormaps[name](np.linspace(0, 1, 256))[:, :3]).astype(np.uint8)
    return base64.b64encode(table.tobytes()).decode("ascii")
