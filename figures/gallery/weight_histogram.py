"""Histogram of each method's final parameters, and how many are near zero (FedLAW paper, Fig. 4 middle)."""

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.landscapes.model_quality import weight_histograms
from drift.runs.run import Run
from figures.axes import curves, model_quality
from figures.gallery import _runs, _stack
from figures.looks import style
from landscape.measures.norms import NEAR_ZERO

NEEDS = "runs of any methods, trained in one setting, that kept their last global model"

COST = "seconds"


def data(runs: Sequence[Run], *, bins: int = 101, limit: float | None = None) -> xr.Dataset:
    """count (parameters) over algorithm, seed and value; near_zero (fraction) and norm over algorithm and seed.

    Args:
        bins: Bins of the histogram.
        limit: It reaches from -limit to limit; by default to the largest magnitude in all models.
    """
    what, why = "no run kept a global model", "it kept no global model"
    command = "fedscape train digits-shards2"
    selected = _runs.select_suited(
        _runs.select_comparable(runs), lambda run: run.kept("globals"), what=what, command=command, why=why
    )
    last = [run.round(run.kept("globals")[-1]).kept("end") for run in selected]
    reach = limit if limit is not None else max(float(theta.abs().max()) for theta in last)

    def compute(run: Run) -> xr.Dataset:
        histograms = run.cached(weight_histograms, bins=bins, limit=reach).isel(round=0, drop=True)
        return histograms[["count", "norm"]].assign(near_zero=histograms.near_zero / histograms.parameters)

    return _stack.stack_runs(selected, compute)


def draw(ds: xr.Dataset) -> Figure:
    """Stepped histograms; bars for the share near zero and the norm."""
    figure, axs = style.panels(1, 3, height=2.5, width_ratios=(2.2, 1, 1))
    model_quality.histogram(ds, ax=axs[0, 0])
    for ax, name, label in (
        (axs[0, 1], "near_zero", f"share with |w| < {NEAR_ZERO}"),
        (axs[0, 2], "norm", r"weight norm $\|w\|_2$"),
    ):
        model_quality.bars(ds[name].expand_dims("mark"), ax=ax, over="mark", ticks=[""])
        style.name_axes(ax, "method", label)
    return style.key(figure, axs.flat, title=curves.band(ds))
