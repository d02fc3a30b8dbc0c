"""Test accuracy over the first rounds and over all of them, one line per method (LSS paper, Figs. 3 and 9)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _runs, _stack
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting"

COST = "seconds"


def data(runs: Sequence[Run], *, early: int = 10) -> xr.Dataset:
    """accuracy (fraction) over algorithm, seed and rounds trained; early is the last round of the first panel.

    Args:
        early: Rounds in the first panel.
    """
    if early < 1:
        raise ValueError(f"early is {early}; give the rounds of the first panel, 1 or more.")
    ds = _stack.stack_runs(_runs.select_comparable(runs), lambda run: run.metrics()[["accuracy"]])
    trained = ("round", ds["round"].values + 1, {"long_name": "rounds trained", "units": "rounds"})
    return ds.assign_coords(round=trained).assign_attrs(early=min(early, ds.sizes["round"]))


def draw(ds: xr.Dataset) -> Figure:
    """The first rounds with a mark each; all rounds, the first ones shaded."""
    figure, axs = style.panels(1, 2, height=2.6)
    first = ds.sel(round=slice(None, ds.attrs["early"]))
    curves.curve(first, ax=axs[0, 0], marker="o", markersize=2.5)
    curves.curve(ds, ax=axs[0, 1])
    axs[0, 1].axvspan(0.5, ds.attrs["early"] + 0.5, color="#f0f0f0", linewidth=0, zorder=0)
    for ax, title in zip(axs.flat, ("early", "early (shaded) and late"), strict=True):
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        ax.set(title=title, xlabel="rounds trained", ylabel="test accuracy")
    shown = np.isfinite(ds.accuracy.values).any(axis=tuple(range(ds.accuracy.ndim - 1)))
    axs[0, 1].set_xlim(0.5, float(ds["round"].values[shown][-1]) + 0.5)
    return style.key(figure, axs.flat, title=curves.band(ds))
