"""Shrinking factor, methods in rows, settings in columns, with the paper's own (FedLAW paper, Tables 2 and 10)."""

from collections.abc import Sequence
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.norms_and_weights import regularisation_ratio_mean
from drift.runs.run import Run
from figures.gallery import _table_figure, _tables

NEEDS = "runs of FedLAW (joint or GWS) or any other methods, in any settings"

COST = "seconds"


@_tables.takes_axes
def data(runs: Sequence[Run], *, window: tuple[float, float] = (0.45, 0.55), **axes: Any) -> xr.Dataset:
    """measured (and printed, quick) over row, column and seed: the sum of the aggregation weights, 1 for FedAvg.

    Args:
        window: Rounds that it is the mean over, as in `drift.regularisation_ratio_mean`.
        rows, over: As in accuracy-table.
        paper, item: Whose printed numbers are added, such as fedlaw and "Table 2 (gamma)".
    """

    def mean(run: Run) -> float:
        return float(run.cached(regularisation_ratio_mean, window=window).gamma)

    ds = _tables.tabulate(runs, mean, **axes)
    ds = _tables.label_numbers(ds, "shrinking factor", "1", digits=4)
    return ds.assign_attrs(about=f"rounds {window[0]:.0%} to {window[1]:.0%} of a run")


def draw(ds: xr.Dataset) -> Figure:
    """A table; columns of the paper are grey."""
    title = f"shrinking factor, mean of {ds.attrs['about']}"
    return _table_figure.draw_table(ds, title)
