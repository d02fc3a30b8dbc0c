"""Test accuracy over early and over late rounds, one line per method (LSS paper, Figs. 3 and 9)."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _runs, _stack
from figures.looks import look, style

NEEDS = "runs of any methods, trained in one setting"

COST = "seconds"


def data(runs: Sequence[Run], *, early: int = 10) -> xr.Dataset:
    """accuracy (fraction) over algorithm, seed and rounds trained; early is the last round of the first panel.

    Args:
        early: Rounds in the first panel; half of them where a run has no more.
    """
    if early < 1:
        raise ValueError(f"early is {early}; give the rounds of the first panel, 1 or more.")
    ds = _stack.stack_runs(_runs.select_comparable(runs), lambda run: run.metrics()[["accuracy"]])
    trained = ("round", ds["round"].values + 1, {"long_name": "rounds trained", "units": "rounds"})
    half = max(1, ds.sizes["round"] // 2)
    return ds.assign_coords(round=trained).assign_attrs(early=early if early < ds.sizes["round"] else half)


def draw(ds: xr.Dataset) -> Figure:
    """The first rounds with a mark each; those from the last of them on, smoothed where they are many."""
    figure, axs = style.panels(1, 2, height=2.6)
    shown = np.isfinite(curves.require_values(ds.accuracy).values).any(axis=tuple(range(ds.accuracy.ndim - 1)))
    last, early = int(ds["round"].values[shown][-1]), ds.attrs["early"]
    smooth = look.current().take("smooth") or (last // 30 if last >= 60 else 0)  # of many rounds
    curves.curve(ds.sel(round=slice(None, early)), ax=axs[0, 0], smooth=0, marker="o", markersize=2.5)
    curves.curve(ds.sel(round=slice(early, last)), ax=axs[0, 1], smooth=smooth)
    for ax, title in zip(axs.flat, ("early, not smoothed" if smooth else "early", "late"), strict=True):
        style.name_axes(ax, "rounds trained", "test accuracy", integers=5).set_title(title)
    return style.key(figure, axs.flat, title=curves.band(ds))
