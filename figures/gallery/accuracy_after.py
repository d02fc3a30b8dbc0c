"""Accuracy after few rounds, methods in rows, settings in columns, with the paper's own (LSS paper, Table 1)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.runs.run import Run
from figures.gallery import _table_figure, _tables

NEEDS = "runs of any methods in any settings"

COST = "seconds"


@_tables.takes_axes
def data(runs: Sequence[Run], *, after: Sequence[int] = (1, 3), **axes: Any) -> xr.Dataset:
    """measured (and printed, quick) over row, column and seed, fractions; NaN where a run has fewer rounds.

    Args:
        after: Rounds trained when the accuracy is taken.
        rows: What rows are: "method", "pool" (with the models of a client of LSS) or a setting, such as method.window.
        over: Settings whose values are columns, such as ["clients.concentration"].
        paper, item: Whose printed numbers are added, such as lss and "Table 1".
    """
    ds = _tables.tabulate_several(runs, _tables.numbers_after(_accuracy, after), **axes)
    ds = _tables.label_numbers(ds, "accuracy", "fraction")
    return ds if "printed" not in ds else ds.assign(printed=ds.printed / 100)


def draw(ds: xr.Dataset) -> Figure:
    """A table; columns of the paper are grey."""
    return _table_figure.draw_table(ds, "test accuracy in % after R rounds")


def _accuracy(run: Run, *, round: int) -> float:
    stored = run.numbers_of([round]) if round in run.rounds() else []
    return float(stored[0].get("accuracy", np.nan)) if stored else float("nan")
