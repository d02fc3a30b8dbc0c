"""Gradient coherence over rounds with its critical point (FedLAW paper, Figs. 5, 6)."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.coherence import coherence
from drift.runs.run import Run
from figures.axes import curves, drifts
from figures.gallery import _runs, _selected
from figures.looks import style
from figures.selection import recorded_numbers

NEEDS = "runs of FedAvg and FedLAW (GWS), or of any methods, trained in one setting with two or more clients per round"

COST = "seconds"

_OTHERS = {"mean_cosine": ("mean cosine of updates", 0), "accuracy": ("test accuracy", None)}


@_selected.each_run(select=_selected.preferring("fedavg", "fedlaw-gws"))
def data(run: Run, *, smooth: int = 3) -> xr.Dataset:
    """coherence, its moving average, mean_cosine and accuracy over algorithm, seed and round; critical_point.

    Args:
        methods: Which are shown; by default all, of runs to choose from FedAvg and FedLAW (GWS), if there.
        smooth: Rounds in the moving average.
    """
    if run.experiment.clients.per_round < 2:
        command = "fedscape train digits-shards2 --set clients.per_round=5"
        raise _runs.missing(f"run {run.name} has one client per round, but coherence needs two", command)
    numbers = ("coherence", "coherence_smooth", "mean_cosine")
    result = recorded_numbers.numbers_of_record(run, coherence, numbers, smooth=smooth)
    return recorded_numbers.with_metric(result, run, "accuracy")


def draw(ds: xr.Dataset) -> Figure:
    """Coherence, mean cosine between updates, and accuracy where it was recorded."""
    first, *others = recorded_numbers.present(ds, ("coherence", *_OTHERS))
    figure, axs = style.panels(1, 1 + len(others), cell=0.2, sharex=True)
    dots = {**curves.DOTS, "markersize": 3, "markevery": max(1, ds.sizes["round"] // 8)}
    drifts.coherence(ds, ax=axs[0, 0], variable=first, **dots)
    for ax, name in zip(axs[0, 1:], others, strict=True):
        text, level = _OTHERS[name]
        curves.curve(ds, ax=ax, variable=name, label=text, level=level, **dots)
    return style.key(figure, axs.flat, title=curves.band(ds))
