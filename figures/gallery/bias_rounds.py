"""Train bias and heterogeneity bias of the clients over rounds, beside the error of their mean (IMA paper, Fig. 2)."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift import terrain
from drift.decomposition import decomposition
from drift.run import Run
from figures import curves, style
from figures.gallery import _stack

NEEDS = "runs of any methods, trained in one setting, that kept the clients of some rounds"

_SHOWN = {
    "train_bias": "train bias",
    "heterogeneity_bias": "heterogeneity bias",
    "fma_error": "training error of the mean",
}


def data(runs: Sequence[Run], *, rounds: int = 8, samples_per_client: int = 50) -> xr.Dataset:
    """train_bias, heterogeneity_bias and fma_error over algorithm, seed and round.

    Args:
        rounds: How many rounds are looked at, evenly spread over those that kept clients.
        samples_per_client: Training samples of each client that the biases are averaged over.
    """

    def compute(run: Run) -> xr.Dataset:
        indices = terrain.spread(run.kept("clients"), rounds)
        return run.cached(decomposition, rounds=indices, samples_per_client=samples_per_client)[list(_SHOWN)]

    return _stack.stacked(_stack.comparable(runs), compute)


@style.styled
def draw(ds: xr.Dataset) -> Figure:
    """Both biases on one scale, and the error of the averaged model on the cohort's data."""
    figure, axs = style.panels(1, 3)
    for ax, (variable, label) in zip(axs.flat, _SHOWN.items(), strict=True):
        curves.curve(ds, ax=ax, variable=variable, marker="o", markersize=2.5)
        ax.set_ylabel(label)
    style.same_range(*axs[0, :2])
    style.key(figure, axs.flat, title=curves.band(ds))
    return figure
