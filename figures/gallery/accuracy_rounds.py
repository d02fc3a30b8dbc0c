"""Test accuracy and loss over rounds, one line per method, in bands over seeds (LSS paper, Fig. 3; FedEve, Fig. 3b)."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift.runs.run import Run
from figures import style
from figures.axes import curves
from figures.gallery import _runs, _stack

NEEDS = "runs of any methods, trained in one setting"

COST = "seconds"


def data(runs: Sequence[Run]) -> xr.Dataset:
    """accuracy (fraction), loss and local_loss (nats) over algorithm, seed and round."""
    variables = ["accuracy", "loss", "local_loss"]
    return _stack.stack_runs(_runs.select_comparable(runs), lambda run: run.metrics()[variables])


def draw(ds: xr.Dataset) -> Figure:
    """Accuracy, loss on the test set, loss on the clients' own data; those that were recorded."""
    texts = {"accuracy": "test accuracy", "loss": "test loss", "local_loss": "clients' training loss"}
    labels = {name: text for name, text in texts.items() if ds[name].notnull().any()}
    if not labels:
        raise LookupError(f"no run recorded any of {', '.join(texts)}.")
    named = ds.assign({name: ds[name].assign_attrs(long_name=text) for name, text in labels.items()})
    figure, axs = style.panels(1, len(labels))
    for ax, name in zip(axs.flat, labels, strict=True):
        curves.curve(named, ax=ax, variable=name, log=name != "accuracy")
    style.key(figure, axs.flat, title=curves.band(ds))
    return figure
