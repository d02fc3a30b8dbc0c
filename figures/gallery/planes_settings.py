"""Planes through clients and globals, a row per setting or method, a column per round (IMA paper, Figs. 8 to 10)."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.runs.run import Run
from figures import papers
from figures.axes import colour_bars
from figures.gallery import _planes, _runs, _stack
from figures.looks import look, style
from figures.selection import partition_text, run_selection, setting_text

NEEDS = "runs of any methods and settings with three or more clients per round, that kept the clients of some rounds"

COST = "a minute per run"


def data(
    runs: Sequence[Run], *, variable: str = "loss", points: int = 15, most: int = 5, paper: str = "", item: str = ""
) -> xr.Dataset:
    """loss (nats) and error (fraction) over panel, alpha and beta, with coordinates and minimum of each panel.

    Panels are row by row: clients of an early, a middle and the last round that kept them, then the last three globals.

    Args:
        variable: Which is drawn, "loss" or "error".
        points: Grid points per axis.
        most: Rows; the first ones, one seed of each method and setting.
        paper, item: What settings are called, such as ima and "Fig. 10".

    Raises:
        LookupError: If no run kept three clients of three rounds, and three global models.
        ValueError: If the variable is neither.
    """
    if variable not in ("loss", "error"):
        raise ValueError(f"variable is {variable!r}; give loss or error.")
    rows = _rows(runs, paper, item)
    if not rows:
        few = f"none of {len(runs)} runs kept three clients in each of three rounds, and three global models"
        raise _runs.missing(few, _runs.KEEP_CLIENTS)
    rows = dict(list(rows.items())[:most])
    why = f"this figure shows one seed per method and setting, {most} rows, and runs with clients of three rounds"
    run_selection.narrow(runs, rows.values(), why)
    planes = [plane for run in rows.values() for plane in _row(run, points)]
    joined = _stack.join_panels(planes).assign_coords(row=("panel", [name for name in rows for _ in range(COLUMNS)]))
    return _stack.name_runs(joined, list(rows.values())).assign_attrs(variable=variable)


def draw(ds: xr.Dataset) -> Figure:
    """Small multiples; levels are common to the client planes, the globals of each row have their own.

    Client planes have the levels of their row where common ones would show one of the rows in few colours.

    In a narrow figure, a bar on each map shows a distance in place of ticks.

    Raises:
        ValueError: If the rows do not fit a page.
    """
    variable, names = str(ds.attrs["variable"]), list(dict.fromkeys(map(str, ds.row.values)))
    planes, close = _stack.panels(ds), style.is_narrow()
    if len(names) > (fit := MOST[close]):
        raise ValueError(
            f"{len(names)} rows of maps do not fit a page; {fit} do at this width. Name fewer runs or methods, or set "
            f"most={fit}, which shows the first ones."
        )
    tall = 1.6 * len(names) + 0.75
    shapes = [float(np.divide(*(np.ptp(plane[name].values) for name in ("alpha", "beta")))) for plane in planes]
    ratios = np.reshape(shapes, (len(names), COLUMNS)).max(0)  # so maps are as tall as the others of their row
    figure, axs = style.panels(len(names), COLUMNS, height=tall, stacked=COLUMNS, cell=1.6, width_ratios=ratios)
    own_levels = _need_own_levels(planes, variable)
    kinds = [kind for name in names for kind in (*[name if own_levels else ""] * (COLUMNS - 1), f"globals of {name}")]
    options: dict[str, Any] = {"kinds": kinds, "beside": not close, "names": False}
    _planes.maps(figure, list(axs.flat), _planes.short_marks(planes), variable, **options)
    for index, (row, name) in enumerate(zip(axs, setting_text.differing_words(names), strict=True)):
        shown = planes[index * COLUMNS : (index + 1) * COLUMNS]
        for ax, plane, first in zip(row, shown, planes[:COLUMNS], strict=True):
            ax.set(xlabel="", ylabel="")
            label = plane.attrs["label"]
            if close:  # the last one leaves a line for the name of the row
                label = label.replace("last three globals", "last three\nglobals").replace(", round", ",\nround")
            named = style.with_unit(label, plane[variable]) if _planes.OWN_SCALE in label and not close else label
            is_told = index > 0 and plane.attrs["label"] == first.attrs["label"]  # above
            ax.set_title(named, fontsize=style.small(), pad=2).set_visible(not is_told)
            ax.set_anchor("N")
            if close:
                _planes.scale_bar(ax)
                continue
            ax.locator_params(nbins=4)
            ax.tick_params(labelsize=style.small(), pad=1.5, length=2)
        if close:
            letters = int(0.72 * style.width() / (0.57 * style.small() / 72))  # above three of the four maps
            name = style.literal(textwrap.shorten(name, letters, placeholder=" .."))
            above = 3 + 2.5 * style.small() * row[0].title.get_visible()
            row[0].annotate(name, (0, 1), (0, above), **_NAME, fontsize=style.small()).set_in_layout(False)
        else:
            row[0].set_ylabel(textwrap.fill(style.literal(name), 20), fontsize=style.small())
    if not close:
        figure.supxlabel("distance in parameter space along u and, upwards, along v", fontsize=style.small())
    about = "white bar: a distance in parameter space" * close
    return _planes.key(figure, axs, "a client (right: a global model)", title=about)


def _need_own_levels(planes: Sequence[xr.Dataset], variable: str) -> bool:
    """Whether levels common to the client planes of all rows would show one of the rows in less than half of them."""
    rows = [[plane[variable] for plane in planes[first:][: COLUMNS - 1]] for first in range(0, len(planes), COLUMNS)]
    log = variable == "loss"
    levels = [
        colour_bars.common_levels(*values, log=log) for values in ([value for row in rows for value in row], *rows)
    ]
    common_span, *spans = [float(np.ptp(np.log(scale) if log and scale[0] > 0 else scale)) for scale in levels]
    return min(spans) < 0.5 * common_span


COLUMNS = 4
"""Clients of three rounds, and the last three global models."""

MOST = (6, 5)
"""Rows that fit a page, in a figure of its width and in a narrow one."""

_NAME: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "bottom"}


def _rows(runs: Sequence[Run], paper: str, item: str) -> dict[str, Run]:
    """One run for each method and setting, by name, that of the smallest seed."""
    item_labels = {}
    if paper:
        matched = papers.match_runs(papers.load(paper).item(item), runs)
        item_labels = {run.folder: match.setting.label for match in matched for run in match.runs}
    able = [run for run in runs if _able(run)]
    labels = {run.label for run in able}
    rows: dict[str, Run] = {}
    for run in sorted(able, key=lambda run: run.experiment.seed):
        task, clients = run.experiment.task, run.experiment.clients
        what = run.data_name.replace("_", " "), task.model, partition_text.partition_label(run)
        cohort = f"{clients.per_round} of {clients.number} clients"
        words = item_labels.get(run.folder) or ", ".join(filter(None, (*what, cohort)))
        rows.setdefault(f"{look.label(run.label)}, {words}" if len(labels) > 1 else words, run)
    order = list(item_labels) or [run.folder for run in runs]
    return dict(sorted(rows.items(), key=lambda pair: order.index(pair[1].folder)))


def _able(run: Run) -> bool:
    """Whether it kept three clients of three rounds or more, and three global models."""
    rounds = _planes.early_middle_last(run.kept("clients", least=3))
    return len(rounds) == COLUMNS - 1 and len(run.kept("globals")) >= 3


def _row(run: Run, points: int) -> list[tuple[str, xr.Dataset]]:
    rounds = _planes.early_middle_last(_runs.kept_clients(run, least=3))
    planes = [(f"clients, round {index}", _planes.widest_plane(run, index, points=points)) for index in rounds]
    return [*planes, (f"last three globals,\n{_planes.OWN_SCALE}", _planes.global_plane(run, points=points))]
