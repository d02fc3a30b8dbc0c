"""Test accuracy with fixed shrinking factors, over rounds and over the factor (FedLAW paper, Fig. 1 and Table 1)."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.runs.run import Run
from drift.simulation.compare import last_words
from figures.axes import curves
from figures.gallery import _runs, _stack
from figures.looks import style
from figures.selection.groups import largest_group
from figures.selection.run_selection import settings_key
from figures.selection.sampling_error import over_last_rounds

NEEDS = "runs of shrink with two factors gamma or more, trained in one setting"

COST = "seconds"


def data(runs: Sequence[Run], *, last: int = 10) -> xr.Dataset:
    """accuracy (fraction) over factor, seed and round; late, its mean over the last rounds, over factor and seed.

    Of several settings among the runs, that with most factors is shown, the first among equals.

    Args:
        last: Rounds at the end that the mean is over.

    Raises:
        LookupError: If no setting has two factors.
    """
    shrunk = (run for run in runs if run.method.name() == "shrink")
    selected = {_factor(run): run for run in largest_group(shrunk, lambda run: settings_key(run, ["method"]), _extent)}
    factors, seeds = sorted({factor for factor, _ in selected}), sorted({seed for _, seed in selected})
    if len(factors) < 2:
        command = "fedscape sweep digits-shards2 --grid method=shrink method.gamma=1.0,0.97,0.9"
        raise _runs.missing("these runs have fewer than two shrinking factors", command)
    array = _stack.fill_array(
        _stack.accuracies(selected), {"factor": factors, "seed": seeds}, *_stack.ACCURACY, "round"
    )
    ds = array.to_dataset(name="accuracy")
    ds["late"] = over_last_rounds(ds.accuracy, last).assign_attrs(ds.accuracy.attrs)
    ds.factor.attrs.update(long_name=r"shrinking factor $\gamma$", units="1")
    shown = list(selected.values())
    return _stack.name_runs(ds, shown).assign_attrs(last=last, rounds=last_words(shown, last))


def _factor(run: Run) -> tuple[float, int]:
    """Factor and seed."""
    return float(getattr(run.method, "gamma", np.nan)), run.experiment.seed


def _extent(runs: Sequence[Run]) -> tuple[int, int]:
    """Numbers of factors, and of factors and seeds."""
    factors = set(map(_factor, runs))
    return len({factor for factor, _ in factors}), len(factors)


def draw(ds: xr.Dataset) -> Figure:
    """A line per factor, from the smallest (dark) to the largest; the mean of the last rounds, a dot per factor."""
    figure, axs = style.panels(1, 2, height=2.8, width_ratios=(1.5, 1))
    colours = style.steps(ds.sizes["factor"])
    for colour, factor in zip(colours, ds.factor.values, strict=True):
        look = {"color": colour, "label": rf"$\gamma$ = {factor:g}", "linewidth": 1.1}
        curves.line_with_band(ds.accuracy.sel(factor=factor), ax=axs[0, 0], over="round", **look)
    style.name_axes(axs[0, 0], "round", style.text(ds.accuracy))
    curves.line_with_band(ds.late, ax=axs[0, 1], over="factor", color="#777777", linewidth=0.8, zorder=1)
    axs[0, 1].scatter(ds.factor, curves.mean(ds.late, "seed"), c=colours, s=16, zorder=3)
    style.name_axes(axs[0, 1], style.text(ds.factor), f"accuracy, {ds.attrs['rounds']}")
    return style.key(figure, axs.flat, title=curves.band(ds))
