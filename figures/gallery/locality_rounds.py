"""Largest distance of a client to the clients' mean over rounds, and the test error (IMA paper, Fig. 3)."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift.locality import locality
from drift.run import Run
from figures import curves, style
from figures.gallery import _stack

NEEDS = "runs of any methods, trained in one setting"


def data(runs: Sequence[Run]) -> xr.Dataset:
    """locality and mean_distance (parameter-space length), error (fraction), over algorithm, seed and round."""

    def compute(run: Run) -> xr.Dataset:
        return run.cached(locality)[["locality", "mean_distance"]].assign(error=run.metrics()["error"])

    return _stack.stacked(_stack.comparable(runs), compute)


@style.styled
def draw(ds: xr.Dataset) -> Figure:
    """Locality and error over rounds."""
    figure, axs = style.panels(1, 2, height=2.4)
    curves.curve(ds, ax=axs[0, 0], variable="locality")
    curves.curve(ds, ax=axs[0, 1], variable="error")
    axs[0, 0].set_ylabel(r"locality $\max_k\|w_k-\bar w\|$")
    axs[0, 0].set_ylim(bottom=0)
    axs[0, 1].set_ylabel("test error")
    style.key(figure, axs.flat, title=curves.band(ds))
    return figure
