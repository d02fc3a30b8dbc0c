"""Cost of each method: multiply-accumulates, seconds, memory and bytes of a round (LSS paper, Table 5)."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.cost import training_cost
from drift.runs.run import Run
from figures import papers
from figures.axes.units import ranged
from figures.gallery import _runs, _stack, _table_figure
from figures.looks import style
from figures.selection import run_selection, setting_text
from figures.texts.table import Cell
from landscape.measures.cost import REPEATS

NEEDS = "runs of any methods, trained in one setting, that kept a global model and what its clients received"

COST = "seconds per run"

COLUMNS = {
    "macs": ("forward pass\nof a sample", "MAC"),
    "macs_training": ("by pool size\n(paper)", "MAC"),
    "macs_round": ("local training\nof a client", "MAC"),
    "seconds_epoch": ("time of\nan epoch", "s"),
    "seconds_round": ("time of local\ntraining", "s"),
    "plain_ratio": ("time over\nplain training", "1"),
    "memory_round": ("memory\nof a client", "B"),
    "bytes_up": ("upload\nof a round", "B"),
    "bytes_down": ("download\nof a round", "B"),
}

_NOTE = (
    "training counts forward and backward passes; bytes: all that clients of the cohort must exchange with the server, "
    "models, buffers and control variates, without layers that stay with clients; seconds: median [range] of repeats, "
    "measured at different times: compare methods by the time over plain training, which ran in turn with them"
)

PRINTED = ("macs_training", "seconds_epoch", "seconds_round")
"""What the LSS paper prints of these."""


def data(
    runs: Sequence[Run], *, round: int = -1, repeats: int = REPEATS, paper: str = "", item: str = ""
) -> xr.Dataset:
    """macs, macs_training, macs_round, seconds, bytes and memory over row: a method, LSS by the models of a client.

    Args:
        round: Round whose largest client is trained again; negative counts from the last one kept.
        repeats: Measured trainings: seconds are their median, with their range.
        paper, item: Whose printed numbers are added below, as NAME_printed, such as lss and "Table 5".
    """
    selected: dict[str, Run] = {}
    comparable = _runs.select_comparable(runs, ["pool"])
    for run in sorted(comparable, key=lambda run: run.experiment.seed):
        selected.setdefault(setting_text.value(run, "pool"), run)
    run_selection.narrow(comparable, selected.values(), "this table has one run per method")
    rows = _ordered(selected)
    costs = [selected[row].cached(training_cost, round=round, repeats=repeats) for row in rows]
    ds = xr.concat(costs, "row", join="exact").assign_coords(row=rows).drop_attrs(deep=False)
    if paper:
        printed = {(number.row, number.column): number.value for number in papers.load(paper).item(item).numbers}
        for name in PRINTED:
            values = [printed.get((row, name), np.nan) for row in rows]
            ds[f"{name}_printed"] = ("row", values, {**ds[name].attrs, "long_name": f"printed, {item}"})
        ds.attrs["printed"] = f"{papers.load(paper).title}, {item}"
    for cost in ds:
        ds[cost].attrs["better"] = ""  # several costs make no winner
    return _stack.name_runs(ds, list(selected.values())).assign_attrs(columns=", ".join(COLUMNS))


def draw(ds: xr.Dataset) -> Figure:
    """A table, one row per method; in grey beside the measured numbers, what the paper prints and how it counts."""
    names = [style.literal(setting_text.row_label(str(name))) for name in ds.row.values]
    groups = []
    for key, (head, unit) in COLUMNS.items():
        if key in PRINTED[:2] and "printed" not in ds.attrs:  # the paper's own ways to count
            continue
        columns = {"": _cells(ds, key, unit)}
        if f"{key}_printed" in ds:
            columns = {"measured": columns[""], "paper": _cells(ds, f"{key}_printed", unit, printed=True)}
        groups.append(_table_figure.Group(head.split("\n"), columns))
    where = f"; paper: {ds.attrs['printed']}" if "printed" in ds.attrs else ""
    macs = ds.macs_round.values
    most, least = int(np.argmax(np.nan_to_num(macs))), int(np.argmin(np.nan_to_num(macs, nan=np.inf)))
    times = ""
    if macs[most] > macs[least] > 0:
        times = f"{names[most]} computes {macs[most] / macs[least]:.2g} times as much as {names[least]}; "
    return _table_figure.draw_groups(groups, names, f"{times}{_NOTE}{where}")


def _cells(ds: xr.Dataset, key: str, unit: str, *, printed: bool = False) -> list[Cell]:
    return [Cell(ranged(ds.isel(row=row), key, unit), printed=printed) for row in range(ds.sizes["row"])]


def _ordered(rows: Mapping[str, Run]) -> list[str]:
    """Rows in the order of legends, those of one method by their number of models."""
    methods = style.order(run.label for run in rows.values())
    return sorted(rows, key=lambda row: (methods.index(rows[row].label), rows[row].method.pool_size))
