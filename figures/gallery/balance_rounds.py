"""Balance of optimisation and shrinking over rounds: two norms and their ratio r (FedLAW paper, Figs. 3 and 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.norms_and_weights import balance
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _runs, _stack
from figures.looks import style
from figures.selection import run_selection

NEEDS = "runs of FedLAW (joint or GWS) or another method whose weights do not sum to 1, trained in one setting"

COST = "seconds"


def data(runs: Sequence[Run]) -> xr.Dataset:
    """optimisation, regularisation, ratio and gamma over algorithm, seed and round, of the methods that shrink."""
    shrinking = [run for run in runs if bool(np.isfinite(run.cached(balance).ratio).any())]
    if not shrinking:
        command = "fedscape train digits-shards2 --set method.name=fedlaw --set method.variant=gws"
        raise _runs.missing(f"none of {len(runs)} runs shrinks its model", command)
    return _stack.stack_runs(
        _runs.select_comparable(run_selection.narrow(runs, shrinking, "its weights sum to 1")),
        lambda run: run.cached(balance),
    )


def draw(ds: xr.Dataset) -> Figure:
    """Norms (optimisation solid, shrinking dashed), ratio, gamma."""
    figure, axs = style.panels(1, 3)
    positive = ds.assign(regularisation=ds["regularisation"].where(ds["regularisation"] > 0))
    curves.curve(ds, ax=axs[0, 0], variable="optimisation")
    look: dict[str, Any] = {"variable": "regularisation", "names": False, "log": True, "linestyle": "--"}
    curves.curve(positive, ax=axs[0, 0], **look)
    axs[0, 0].set_ylabel("update (solid), shrinking (dashed)", fontsize=style.small())
    curves.curve(ds, ax=axs[0, 1], variable="ratio", log=True, label="balance ratio r")
    curves.curve(ds, ax=axs[0, 2], variable="gamma", label=r"shrinking factor $\gamma$", level=1)
    style.key(figure, axs.flat, title=curves.band(ds))
    return figure
