"""Gradient coherence over rounds with its critical point (FedLAW paper, Figs. 5, 6)."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.coherence import coherence
from drift.runs.run import Run
from figures.axes import curves, drifts
from figures.gallery import _runs, _selected
from figures.looks import style

NEEDS = "runs of FedAvg and FedLAW (GWS), or of any methods, trained in one setting with two or more clients per round"

COST = "seconds"


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
    result = run.cached(coherence, smooth=smooth)
    return result.assign(coherence=result["coherence"], accuracy=run.metrics()["accuracy"])


def draw(ds: xr.Dataset) -> Figure:
    """Coherence, mean cosine between updates, and accuracy where it was recorded."""
    has_accuracy = bool(ds.accuracy.notnull().any())
    figure, axs = style.panels(1, 2 + has_accuracy, cell=0.2, sharex=True)
    dots = {**curves.DOTS, "markersize": 3, "markevery": max(1, ds.sizes["round"] // 8)}
    drifts.coherence(ds, ax=axs[0, 0], **dots)
    curves.curve(ds, ax=axs[0, 1], variable="mean_cosine", label="mean cosine of updates", level=0, **dots)
    if has_accuracy:
        curves.curve(ds, ax=axs[0, 2], label="test accuracy", **dots)
    return style.key(figure, axs.flat, title=curves.band(ds))
