"""Test error against the number of averaged client models, and CKA of the clients, by round (IMA paper, Fig. 4)."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift import averages, terrain
from drift.run import Run
from figures import curves, drifts, style
from figures.gallery import _stack

NEEDS = "a run that kept the clients of some rounds; runs of the same method with other seeds are averaged"


def data(
    runs: Sequence[Run], *, method: str = "fedavg", rounds: int = 4, subsets: int = 10, cka_rounds: int = 10
) -> xr.Dataset:
    """error (fraction) over algorithm, seed, round, models and draw; cka over algorithm, seed and cka_round.

    Args:
        method: Whose runs are shown.
        rounds, cka_rounds: How many rounds are looked at.
        subsets: Random subsets averaged for each number of models.
    """

    def compute(run: Run) -> xr.Dataset:
        kept = run.kept("clients")
        if not kept:
            command = "fedscape train digits-shards2 --set keep.clients=all"
            raise LookupError(_stack.absent(f"run {run.name} kept no clients", command))
        errors = run.cached(averages.error_averaged, rounds=terrain.spread(kept, rounds), subsets=subsets)
        alike = run.cached(averages.similarity_rounds, rounds=terrain.spread(kept, cka_rounds))
        return errors[["error"]].merge(alike[["cka"]].rename(round="cka_round"))

    chosen = _stack.of(_stack.comparable(runs), method)
    chosen = [run for run in chosen if run.label == chosen[0].label]
    return _stack.stacked(chosen, compute)


@style.styled
def draw(ds: xr.Dataset) -> Figure:
    """Error with a band over the draws; CKA over rounds."""
    figure, axs = style.panels(1, 2, height=2.5)
    drifts.averaged(ds.isel(algorithm=0), ax=axs[0, 0])
    axs[0, 0].set_ylabel("test error of the mean")
    axs[0, 0].set_title(f"{style.label(str(ds.algorithm.values[0]))}; band: std over draws", fontsize=7)
    style.key(figure, [axs[0, 0]])
    curves.curve(ds, ax=axs[0, 1], variable="cka", over="cka_round", marker="o", markersize=2.5)
    axs[0, 1].set_xlabel("round")
    axs[0, 1].set_ylabel("mean CKA of client pairs")
    axs[0, 1].set_title(f"band: {curves.band(ds)}" if curves.band(ds) else "", fontsize=7)
    return figure
