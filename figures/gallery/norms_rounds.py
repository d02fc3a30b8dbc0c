"""Norms of the global model, the mean update and the client updates over rounds (FedLAW paper, Figs. 3 and 10)."""

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.norms_and_weights import update_norms
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _selected
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting"

COST = "seconds"

_SHOWN = {"end_norm": "global model", "update_norm_mean": "client updates", "mean_update_norm": "mean update"}


@_selected.each_run()
def data(run: Run) -> xr.Dataset:
    """end_norm, update_norm_mean and mean_update_norm (parameter-space length) over algorithm, seed and round."""
    return run.cached(update_norms)[list(_SHOWN)]


def draw(ds: xr.Dataset) -> Figure:
    """A panel for each norm."""
    figure, axs = style.panels(1, 3)
    for ax, (name, text) in zip(axs.flat, _SHOWN.items(), strict=True):
        curves.curve(ds, ax=ax, variable=name, log=name != "end_norm", label=f"norm of the {text}")
    return style.key(figure, axs.flat, title=curves.band(ds))
