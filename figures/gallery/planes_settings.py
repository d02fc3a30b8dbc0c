"""Planes through clients and globals, a row per setting or method, a column per round (IMA paper, Figs. 8 to 10)."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drift.runs.run import Run
from figures import papers, style
from figures.axes import surfaces
from figures.gallery import _planes, _runs, _stack
from figures.selection import partition_text, run_selection

NEEDS = "runs of any methods and settings with three or more clients per round, that kept the clients of some rounds"

COST = "a minute per run"


def data(
    runs: Sequence[Run], *, variable: str = "loss", points: int = 15, most: int = 6, paper: str = "", item: str = ""
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
    """Small multiples; levels are common to the client planes of a row, the globals have their own."""
    variable, names = str(ds.attrs["variable"]), list(dict.fromkeys(map(str, ds.row.values)))
    planes = [_stack.panel(ds, index) for index in range(ds.sizes["panel"])]
    figure, axs = style.panels(len(names), COLUMNS, height=1.6 * len(names) + 0.75, stacked=2, cell=0.8)
    for place, (row, name) in enumerate(zip(axs, names, strict=True)):
        shown = planes[place * COLUMNS : (place + 1) * COLUMNS]
        surfaces.row(figure, row, _planes.short_marks(shown), variable, names=False, below=style.is_narrow())
        for ax, plane in zip(row, shown, strict=True):
            ax.set(xlabel="", ylabel="")
            ax.locator_params(nbins=4)
            ax.tick_params(labelsize=style.small(), pad=1.5, length=2)
            ax.set_title(plane.attrs["label"], fontsize=style.small(), pad=2)
        if style.is_narrow():
            row[0].set_title(f"{textwrap.fill(name, 24)}:\n{row[0].get_title()}", fontsize=style.small(), pad=2)
        else:
            row[0].set_ylabel(textwrap.fill(name, 20), fontsize=style.small())
    figure.supxlabel("distance in parameter space along u and, upwards, along v", fontsize=style.small())
    marks = [
        Line2D([], [], marker=marker, color=face, markeredgecolor=edge, markersize=5, linewidth=0, label=text)
        for marker, face, edge, text in (
            ("^", "black", "white", "a client (right: a global model)"),
            ("X", "white", "black", "their mean"),
            ("o", "none", "#555555", "minimum with standard errors"),
        )
    ]
    style.key(figure, axs.flat, handles=marks, columns=3)
    return figure


COLUMNS = 4
"""Clients of three rounds, and the last three global models."""


def _rows(runs: Sequence[Run], paper: str, item: str) -> dict[str, Run]:
    """One run for each method and setting, by name, that of the smallest seed."""
    item_labels = {}
    if paper:
        parts = papers.match_runs(papers.load(paper).item(item), runs)
        item_labels = {run.folder: part.setting.label for part in parts for run in part.runs}
    able = [run for run in runs if _able(run)]
    labels = {run.label for run in able}
    rows: dict[str, Run] = {}
    for run in sorted(able, key=lambda run: run.experiment.seed):
        words = (
            item_labels.get(run.folder)
            or f"{run.experiment.task.dataset.replace('_', ' ')}, {partition_text.partition_label(run)}"
        )
        rows.setdefault(f"{style.label(run.label)}, {words}" if len(labels) > 1 else words, run)
    order = list(item_labels) or [run.folder for run in runs]
    return dict(sorted(rows.items(), key=lambda pair: order.index(pair[1].folder)))


def _able(run: Run) -> bool:
    """Whether it kept three clients of three rounds or more, and three global models."""
    enough = len(_planes.early_middle_last(run.kept("clients"))) == COLUMNS - 1 and len(run.kept("globals")) >= 3
    return enough and run.experiment.clients.per_round >= 3


def _row(run: Run, points: int) -> list[xr.Dataset]:
    rounds = _planes.early_middle_last(run.kept("clients"))
    planes = [
        _planes.round_plane(run, round=index, points=points, clients=_planes.largest_triangle(run, index)).assign_attrs(
            label=f"clients, round {index}"
        )
        for index in rounds
    ]
    last = _planes.global_plane(run, points=points)
    return [*planes, last.assign_attrs(label=f"last three globals,\n{_planes.OWN_SCALE}")]
