"""Shrinking factor and client weights that FedLAW learns, over rounds (FedLAW paper, Figs. 3, 5 and 14)."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift.run import Run
from drift.weights import learned
from figures import curves, style, weights
from figures.gallery import _stack

NEEDS = "runs of FedLAW, any variant, trained in one setting"


def data(runs: Sequence[Run]) -> xr.Dataset:
    """gamma over algorithm, seed and round; weights and weight_ratio over algorithm, seed, round and client."""
    found = [run for run in runs if run.label.partition("-")[0] == "fedlaw"]
    if not found:
        command = "fedscape train digits-shards2 --set method.name=fedlaw"
        raise LookupError(_stack.absent(f"none of {len(runs)} runs learned its weights", command))
    return _stack.stacked(_stack.comparable(found), lambda run: run.cached(learned))


@style.styled
def draw(ds: xr.Dataset) -> Figure:
    """gamma of every variant; lambda of the first variant that learns it, one seed."""
    figure, axs = style.panels(1, 2, height=2.5, width_ratios=(1, 1.25))
    weights.shrink(ds, ax=axs[0, 0])
    style.key(figure, [axs[0, 0]], title=curves.band(ds))
    names = style.order(map(str, ds.algorithm.values))
    shown = next((name for name in names if name != "fedlaw-gws"), names[0])
    part = ds.sel(algorithm=shown)
    seed = next(seed for seed in part.seed.values if bool(part.weights.sel(seed=seed).notnull().any()))
    weights.shares(part.sel(seed=seed), ax=axs[0, 1], variable="weight_ratio")
    axs[0, 1].set_title(f"{style.label(shown)}, seed {seed}", fontsize=7)
    figure.colorbar(axs[0, 1].collections[0], ax=axs[0, 1], label=r"weight $\lambda$ over data share")
    return figure
