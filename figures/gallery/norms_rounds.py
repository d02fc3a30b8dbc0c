"""Norms of the global model, the mean update and the client updates over rounds (FedLAW paper, Figs. 3 and 10)."""

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.norms_and_weights import update_norms
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _selected
from figures.looks import style
from figures.selection.recorded_numbers import numbers_of_record, present

NEEDS = "runs of any methods, trained in one setting"

COST = "seconds"

_SHOWN = {"end_norm": "global model", "update_norm_mean": "client updates", "mean_update_norm": "mean update"}


@_selected.each_run()
def data(run: Run) -> xr.Dataset:
    """end_norm, update_norm_mean and mean_update_norm (parameter-space length) over algorithm, seed and round."""
    return numbers_of_record(run, update_norms, list(_SHOWN))[list(_SHOWN)]


def draw(ds: xr.Dataset) -> Figure:
    """A panel for each norm that the runs have."""
    names = present(ds, list(_SHOWN))
    figure, axs = style.panels(1, len(names), width=style.NARROW if len(names) == 1 else style.WIDE)
    for ax, name in zip(axs.flat, names, strict=True):
        curves.curve(ds, ax=ax, variable=name, log=name != "end_norm", label=f"norm of the {_SHOWN[name]}")
    return style.key(figure, axs.flat, title=curves.band(ds))
