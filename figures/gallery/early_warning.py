"""Sequential tests on the first third of the rounds: statistics against their limits, alarms marked (this project)."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.early_warning import early_warning
from drift.record.early_warning import Family
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _selected
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting"

COST = "seconds"

LABELS = {
    "coherence": "fall of the coherence",
    "rank": "fall of the log rank",
    "client": "log longest / second update",
    "rate": "log step / model",
    "variances": "negative variances",
    "rise": "rise of the log loss",
}
"""Axes of the detectors that have a value in every round; `stall` has one, in the last watched round."""


@_selected.each_run()
def data(run: Run, *, detectors: Family = "all") -> xr.Dataset:
    """statistic over algorithm, seed, round and detector; limit and first_alarm by detector.

    Args:
        detectors: Those of the "drift", of the loss "curve", or "all".
    """
    return run.cached(early_warning, detectors=detectors)


def draw(ds: xr.Dataset) -> Figure:
    """A panel for each detector that has numbers: its statistic, its limit dashed, a ring at the first alarm."""
    shown = [name for name in LABELS if name in ds.detector and bool(np.isfinite(_of(ds, name).statistic).any())]
    if not shown:
        raise LookupError("no watched round has a number that a detector reads; show a run of two clients or more.")
    rows = -(-len(shown) // 3)
    figure, axs = style.panels(rows, min(len(shown), 3))
    for ax in axs.flat[len(shown) :]:
        ax.remove()
    for ax, name in zip(axs.flat, shown, strict=False):
        own = _of(ds, name)
        finite = own.assign(statistic=own.statistic.where(np.isfinite(own.statistic)))
        curves.curve(finite, ax=ax, variable="statistic", label=LABELS[name])
        limit = float(own.limit.max())
        ax.axhline(limit, color="black", linestyle="--", linewidth=0.8, label="limit")
        for algorithm, values in curves.split_algorithms(own.statistic):
            first = own.first_alarm.sel(algorithm=algorithm)
            for seed in own.seed.values:
                if np.isfinite(at := float(first.sel(seed=seed))):
                    height = float(values.sel(seed=seed, round=at))
                    ax.plot(at, min(height, ax.get_ylim()[1]), "o", mfc="none", mec="black", ms=6, label="first alarm")
    return style.key(figure, axs.flat[: len(shown)], title=curves.band(ds))


def _of(ds: xr.Dataset, name: str) -> xr.Dataset:
    return ds.sel(detector=name)
