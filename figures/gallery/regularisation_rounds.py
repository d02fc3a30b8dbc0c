"""Optimisation and shrinking over rounds: two norms and their ratio r (FedLAW paper, Figs. 3 and 11)."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.norms_and_weights import regularisation_ratio
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _selected
from figures.looks import style
from figures.looks.look import current
from figures.selection.recorded_numbers import having

NEEDS = "runs of FedLAW (joint or GWS) or another method whose weights do not sum to 1, trained in one setting"

COST = "seconds"

_shrinking = _selected.suited(
    lambda run: bool(np.isfinite(run.cached(regularisation_ratio).ratio).any()),
    what="no run has weights that do not sum to 1, which shrink the model",
    command="fedscape train digits-shards2 --set method.name=fedlaw --set method.variant=gws",
    why="its weights sum to 1",
)


@_selected.each_run(select=lambda runs: _shrinking(having(runs, regularisation_ratio)))
def data(run: Run) -> xr.Dataset:
    """optimisation, regularisation, ratio and gamma over algorithm, seed and round, of the methods that shrink."""
    return run.cached(regularisation_ratio)


def draw(ds: xr.Dataset) -> Figure:
    """Norms of the update and of the shrinking on one range, ratio, gamma."""
    figure, axs = style.panels(1, 4, height=2.4)
    if files := ds.attrs.get("caption"):
        current().remark(files)
    positive = ds.assign(regularisation=ds["regularisation"].where(ds["regularisation"] > 0))
    labels = {"optimisation": "norm of the update", "regularisation": "norm of the shrinking", "ratio": "ratio r"}
    curves.row(positive, axs.flat, labels, log=True)
    style.same_range(*axs.flat[:2])
    curves.curve(ds, ax=axs[0, 3], variable="gamma", label=r"shrinking factor $\gamma$", level=1)
    return style.key(figure, axs.flat, title=curves.band(ds))
