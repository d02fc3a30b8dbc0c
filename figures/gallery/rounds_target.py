"""Rounds until a test accuracy is reached, methods in rows, with the paper's own (IMA paper, Table II)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.runs.run import Run
from drift.simulation.compare import mean_of_last
from figures.axes.units import NOT_REACHED
from figures.gallery import _runs, _table_figure, _tables
from figures.looks import look
from figures.selection.groups import grouped

NEEDS = "runs of any methods, trained in one setting"

COST = "seconds"


@_tables.takes_axes
def data(runs: Sequence[Run], *, target: float | str | None = None, last: int = 10, **axes: Any) -> xr.Dataset:
    """measured (and printed, quick) over row, column and seed, in rounds; infinite where the accuracy was not reached.

    The first round whose accuracy, not smoothed, is the target or more; the run's first one is 1 (papers.md 7).

    Args:
        target: An accuracy (fraction), or the method whose mean over its last rounds and seeds is the target, such
            as fedadam in Table II; by default the lowest such mean of any method.
        last: Rounds that such a mean is over.
        rows, over: As in accuracy-table: rows "base" and over ["method.start"] give Table II.
        paper, item: Whose printed numbers are added.

    Raises:
        LookupError: If no run is of the method that sets the target.
    """
    runs = runs if axes.get("paper") or axes.get("over") else _runs.select_comparable(runs, lines=False)
    goal = _goal(runs, target, last)
    series = {run.folder: run.metrics().accuracy for run in runs}
    first = {folder: _first(values, goal) for folder, values in series.items()}
    ds = _tables.tabulate(runs, lambda run: first[run.folder], **axes)
    ds = _tables.label_numbers(ds, f"rounds to the target{_missed(ds)}", "rounds")
    gaps = (values.dropna("round")["round"].diff("round").values for values in series.values())
    step = int(max(map(max, filter(len, gaps)), default=1))
    often = {"caption": f"accuracy measured every {step} rounds at least"} if step > 1 else {}
    return ds.assign_attrs(often, target=goal, by=target if isinstance(target, str) else "")


def draw(ds: xr.Dataset) -> Figure:
    """A table, with a word where not every seed reached the target."""
    whose = f" (that of {look.label(ds.attrs['by'])})" if ds.attrs["by"] else ""
    title = f"rounds to {100 * ds.attrs['target']:.2f} % test accuracy{whose}{_missed(ds)}"
    return _table_figure.draw_table(ds, title)


def _goal(runs: Sequence[Run], target: float | str | None, last: int) -> float:
    if isinstance(target, int | float):
        return float(target)
    late = grouped(runs, lambda run: run.label)
    if target is not None and target not in late:
        raise LookupError(
            f"no run is of method {target}, which sets the target; there are {', '.join(late)}. Give target=0.6."
        )
    means = {name: np.mean([mean_of_last(run, "accuracy", last) for run in group]) for name, group in late.items()}
    return min((float(means[name]) for name in (late if target is None else [target])), default=np.nan)


def _first(values: xr.DataArray, target: float) -> float:
    """Rounds until the accuracy (round,) is the target or more, infinite if never."""
    reached = values["round"].values[values.values >= target]
    return float(reached[0] - values["round"].values[0] + 1) if len(reached) else float("inf")


def _missed(ds: xr.Dataset) -> str:
    """What infinite rounds are, in words; empty where every seed reached the target."""
    return f" ({NOT_REACHED}: by one seed or more)" if np.isinf(ds.measured).any() else ""
