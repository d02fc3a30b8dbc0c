"""Test accuracy and loss over rounds, one line per method (LSS paper, Fig. 3; FedEve, Fig. 3b)."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.numbers import quantity
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _runs, _stack
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting"

COST = "seconds"

USUAL = ("accuracy", "loss", "local_loss")

MOST = 4
"""Panels of numbers with other names."""


def data(runs: Sequence[Run]) -> xr.Dataset:
    """accuracy (fraction), loss and local_loss (nats) over algorithm, seed and round.

    Where no run recorded any of these, the numbers that were recorded, by their names: those of the server's model
    first, then `clients_` and `train_` ones, at most MOST.
    """
    selected = _runs.select_comparable(runs)
    recorded = {run.folder: run.metrics() for run in selected}
    names = list(USUAL)
    if not any(ds[name].notnull().any() for ds in recorded.values() for name in USUAL):
        measured = {str(name) for ds in recorded.values() for name in ds.data_vars if ds[name].notnull().any()}
        names = sorted(measured - {"seconds"}, key=lambda name: (name.startswith(("clients_", "train_")), name))[:MOST]
        names = names or list(USUAL)
    return _stack.stack_runs(selected, lambda run: _with_all(recorded[run.folder], names))


def _with_all(ds: xr.Dataset, names: Sequence[str]) -> xr.Dataset:
    """The numbers of these names; NaN for one that a run does not have."""
    absent = xr.DataArray(np.full(ds.sizes["round"], np.nan), dims="round")
    return ds.assign({name: absent for name in names if name not in ds})[list(names)]


def draw(ds: xr.Dataset) -> Figure:
    """Accuracy, loss on the test set, loss on the clients' own data; or recorded numbers by their names."""
    names = [name for name in dict.fromkeys([*USUAL, *map(str, ds.data_vars)]) if name in ds]
    named = {name: ds[name].assign_attrs(long_name=quantity(name).words) for name in names if ds[name].notnull().any()}
    if not named:
        raise LookupError("no run recorded a number; give the metrics of each round to the recorder.")
    figure, axs = style.panels(1, len(named))
    for ax, name in zip(axs.flat, named, strict=True):
        curves.curve(ds.assign(named), ax=ax, variable=name, log=quantity(name).log)
    _stack.mark_averaging(ds, axs.flat)
    return style.key(figure, axs.flat, title=curves.band(ds))
