"""Accuracy of the last rounds, methods in rows, settings in columns, with the paper's own (IMA paper, Table I)."""

from collections.abc import Sequence
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from drift.runs.run import Run
from drift.simulation.compare import last_words, mean_of_last
from figures.gallery import _table_figure, _tables

NEEDS = "runs of any methods in any settings"

COST = "seconds"


@_tables.takes_axes
def data(runs: Sequence[Run], *, metric: str = "accuracy", last: int = 10, **axes: Any) -> xr.Dataset:
    """measured (and printed, quick) over row, column and seed; accuracies are fractions.

    Args:
        metric: A number recorded in every round.
        last: Rounds at the end that it is averaged over (papers.md 7: ten).
        rows: What rows are: "method", "base" (with and without IMA in one row) or a setting, such as method.window.
        over: Settings whose values are columns, such as "method.late", or a list of them.
        paper, item: Whose printed numbers are added, such as ima and "Table I".
    """
    ds = _tables.tabulate(runs, lambda run: mean_of_last(run, metric, last), **axes)
    ds = _tables.label_numbers(ds, metric, _tables.metric_unit(runs, metric))
    return ds.assign_attrs(metric=metric, last=last, rounds=last_words(runs, last, metric))


def draw(ds: xr.Dataset) -> Figure:
    """A table; columns of the paper are grey."""
    fraction = ds.measured.attrs.get("units") == "fraction"
    metric = str(ds.attrs["metric"]).replace("_", " ")
    metric = f"test {metric}" if metric in ("accuracy", "error", "loss") else metric
    title = f"{metric}{' in %' if fraction else ''}, {ds.attrs['rounds']}"
    return _table_figure.draw_table(ds, title)
