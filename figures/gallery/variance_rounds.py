"""Client-drift variance and update change and their Kalman gain over rounds (FedEve paper, equations 12 and 13)."""

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.variance import drift_variances
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _selected, _stack
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting"

COST = "seconds"


@_selected.each_run()
def data(run: Run, *, momentum: str = "recorded") -> xr.Dataset:
    """client_variance, change_variance (squared parameter units) and gain over algorithm, seed and round.

    Args:
        momentum: What a round's update is compared with, as in `drift.drift_variances`.
    """
    return run.cached(drift_variances, momentum=momentum)[["client_variance", "change_variance", "gain"]]


def draw(ds: xr.Dataset) -> Figure:
    """Both variances on one logarithmic scale, and the gain."""
    figure, axs = style.panels(1, 3)
    labels = {"client_variance": r"client drift $\sigma_R^2$", "change_variance": r"update change $\sigma_Q^2$"}
    curves.row(ds, axs[0], labels, log=True)
    style.same_range(*axs[0, :2])
    for ax in axs[0, :2]:
        style.logarithmic(ax)
    curves.curve(ds, ax=axs[0, 2], variable="gain", label="Kalman gain G").set_ylim(0, 1.02)
    _stack.mark_averaging(ds, axs.flat)
    return style.key(figure, axs.flat, title=curves.band(ds))
