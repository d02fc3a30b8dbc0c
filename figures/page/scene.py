"""The scene of the stage: runs, their curves and their landscapes as plain values, for a page or a server.

Numbers of a grid or a curve are float32 in base64 (`figures.page.packed`); a number that is not finite is None.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr

from drift.analyses.rounds.critical_point import critical_point
from drift.analyses.rounds.numbers import quantity
from drift.methods.ima import IMA
from drift.runs.run import Run
from figures.axes import relief
from figures.axes.units import ABSENT
from figures.looks import palette
from figures.page.configuration import configuration
from figures.page.packed import packed
from figures.page.run_labels import run_labels
from figures.page.shown_rounds import least_clients
from figures.selection.groups import told_apart, written_name
from figures.selection.identity import seed_text
from landscape.results.parsed_text import from_toml

LAST = 10
"""Last rounds of which the accuracy of a run is the mean."""

SERIES = ("accuracy", "loss", "client_variance", "change_variance", "mean_cosine", "gain")
"""Numbers of every round on the time line, where a run has them."""

TERMS: dict[str, str] = from_toml((Path(__file__).parent / "terms.toml").read_bytes())
"""Meanings of the terms on the stage, as the glossary has them."""

Detail = Callable[[str, list[Run]], dict[str, Any]]
"""(name of a group, its runs) -> what a page knows of it beside `scene`'s own."""


def scene(grouped: Mapping[str, list[Run]], detail: Detail, last: Callable[[list[Run]], str]) -> dict[str, Any]:
    """Everything that the stage shows.

    Args:
        grouped: Runs that differ in their seed only, by name; the stage shows the first of each.
        detail: Of a group: accuracies (of its runs), series and spread (`curves`), events, note and shown, the value of
            `stage_round` by round. `sent` for a page that is sent; a live page computes landscapes when they are looked
            at.
        last: What an accuracy is the mean of, in words, of the first runs of all groups.

    Returns:
        title, classes, unit (of losses), last (what an accuracy is the mean of), series (words, unit and whether the
        axis is logarithmic, by name), terms (meanings by term), colours (256 x 3 bytes each in base64: values,
        differences), relief (constants of its light and camera), levels (their number), and runs: key, label, full
        (the label with all settings), colour, dash, seeds, settings in which runs differ, rounds, maps (whether
        its rounds have three clients), data (another text for other data), and their detail.
    """
    differing = configuration(grouped)["differing"]["rows"] if grouped else []
    first = [group[0] for group in grouped.values()]
    texts = [(setting, ["" if value == ABSENT else value for value in values]) for setting, values in differing]
    labels, runs = run_labels([palette.label(run.label) for run in first], texts), []
    seeds = [f", seed {few[0].seed}" if len(few) == 1 and few[0].seed is not None else "" for few in grouped.values()]
    labels = [label + seed * (labels.count(label) > 1) for label, seed in zip(labels, seeds, strict=True)]
    labels = told_apart(labels, [run.folder for run in first])
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
        "colours": {"value": _colours(palette.SEQUENTIAL), "difference": _colours(palette.SIGNED)},
        "relief": {
            name: getattr(relief, name.upper()) for name in ("azimuth", "elevation", "light", "tall", "drop", "lift")
        },
        "levels": relief.COUNT,
        "runs": runs,
    }


def _run(name: str, group: list[Run], variant: int) -> dict[str, Any]:
    run = group[0]
    style = palette.dash(run.label, variant)
    return {
        "full": written_name(name),
        "colour": palette.colour(run.label),
        "dash": [] if style == "-" else list(style[1]),
        "seeds": list(map(seed_text, group)),
        "rounds": run.rounds(),
        "maps": least_clients(run) > 2,
        "data": f"{run.data_name} {run.experiment.task.dataset_options}",
    }


def _classes(run: Run) -> list[str]:
    """Names of the classes, as they were recorded or as the user's own task has them."""
    return list(map(str, run.about.get("classes", []) if run.context.user_task is None else run.dataset.classes))


def missing(run: Run) -> str:
    """Why a run has no landscape on the stage, in one line; empty where it has one."""
    if run.without_data:
        return "recorded without its data: no landscape. --task FILE.py:FUNCTION adds it."
    if not run.kept("clients", least=3):
        if run.kept("clients") and run.experiment.clients.per_round > 2:
            return "fewer than three clients came back in each round that kept them: no landscape."
        sizes = [name for name in ("number", "per_round") if getattr(run.experiment.clients, name) < 3]
        settings = " ".join(f"--set clients.{name}=3" for name in sizes) or "--set keep.clients=all"
        return f"kept no round with three clients: no landscape. Train with {settings}."
    return ""


def curves(group: Sequence[Run], number: Callable[[Any, str], xr.DataArray | None]) -> dict[str, dict[str, Any]]:
    """Numbers of the time line over the rounds of the first run of a group.

    Args:
        group: Runs that differ in their seed only.
        number: Of a run by its name; None where it has none.

    Returns:
        series, means over the runs that have a value, and spread, lowest and highest value where there are several
        runs: packed, by name.
    """
    rounds, series, spread = group[0].rounds(), {}, {}
    for name in SERIES:
        known = [values for run in group if (values := number(run, name)) is not None]
        if len(known) == 1:
            series[name] = packed_series(known[0], rounds)
        elif known:
            table = xr.concat([values.reindex(round=rounds) for values in known], "seed", combine_attrs="override")
            series[name] = packed_series(table.mean("seed"), rounds)
            spread[name] = [packed_series(ends, rounds) for ends in (table.min("seed"), table.max("seed"))]
    return {"series": series, "spread": spread}


def packed_series(values: xr.DataArray, rounds: Sequence[int]) -> str:
    """A number over rounds, NaN where it has none."""
    return packed(values.reindex(round=list(rounds)).values)


def events(run: Run, series: xr.DataArray | None, lost: int | None) -> list[dict[str, Any]]:
    """Rounds at which something begins: the critical point, averaging, divergence.

    Args:
        run: The run.
        series: Its coherence over rounds, if that is known.
        lost: Round of the lowest loss of a run that diverged; -1 if no loss is finite.

    Returns:
        Of each round: words, the name of the event before a colon, and of the critical point span, its interval.
    """
    marks = list[dict[str, Any]]()
    if series is not None and not (point := critical_point(series["round"].values, series.values)).reason:
        seed = f" of seed {text}" if (text := seed_text(run)) else ""
        words = f"drift changes [{point.low:.0f}, {point.high:.0f}]: the critical point; mean coherence{seed} is "
        words += "clearly above 0 before, and below 0 after; 95 % interval of the round, from resampled cohorts"
        marks.append({"round": int(point.round), "words": words, "span": [point.low, point.high]})
    if isinstance(method := run.experiment.method, IMA):
        marks.append({"round": method.first_round(run.experiment.rounds), "words": "IMA starts averaging"})
    if lost is not None:
        words = "the loss was lowest here" if lost >= 0 else "no loss is finite"
        marks.append({"round": max(lost, 0), "words": f"diverged: {words}"})
    return [mark for mark in marks if mark["round"] <= run.rounds()[-1]]


def _colours(name: str) -> str:
    table = np.rint(255 * mpl.colormaps[name](np.linspace(0, 1, 256))[:, :3]).astype(np.uint8)
    return base64.b64encode(table.tobytes()).decode("ascii")
