"""How even the classes are that each round's weights stand for, and how like all data (FedLAW paper, Fig. 7)."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.labels import heterogeneity
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _selected
from figures.looks import style

NEEDS = "runs of FedAvg and FedLAW, or of any methods, trained in one setting with label skew"

COST = "seconds"


@_selected.each_run(select=_selected.preferring("fedavg", "fedlaw-attentive", "fedlaw"))
def data(run: Run) -> xr.Dataset:
    """overlap, cosine, jensen_shannon and cohort_share (also by data size, _data) over algorithm, seed and round.

    Args:
        methods: Which are shown; by default all, of runs to choose from FedAvg and FedLAW, if there.
    """
    return run.cached(heterogeneity).drop_vars("share")


def draw(ds: xr.Dataset) -> Figure:
    """Class shares under the weights used, sorted in each round; beside, what these weights add to the likeness."""
    figure, axs = style.panels(1, 2, height=2.6)
    shares = xr.apply_ufunc(
        lambda values: -np.sort(-values), ds.cohort_share, input_core_dims=[["class"]], output_core_dims=[["rank"]]
    )
    ranks = ("rank", np.arange(1, ds.sizes["class"] + 1), {"long_name": "class of a cohort, most frequent first"})
    even = shares.mean("round").assign_coords(rank=ranks).to_dataset(name="share")
    label = "share of the class, mean of all rounds"
    axs[0, 0].axhline(1 / ds.sizes["class"], color="#555555", linewidth=0.9, linestyle=":", label="equal shares")
    curves.curve(even, ax=axs[0, 0], variable="share", over="rank", label=label, marker="o", markersize=3)
    gain = xr.DataArray(ds.overlap - ds.overlap_data, name="gain")
    means = {str(name): float(values.mean()) for name, values in curves.split_algorithms(gain) if values.any()}
    if not means:
        style.sentence(axs[0, 1], "all methods weigh clients by their data size")
    else:
        shown = gain.sel(algorithm=list(means)).to_dataset()
        label = "overlap with all data\nminus that by data size"
        curves.curve(shown, ax=axs[0, 1], variable="gain", label=label, level=0)
        title = ", ".join(f"{style.label(name)} {mean:+.2g}" for name, mean in means.items())
        axs[0, 1].set_title(f"mean: {title}", fontsize=style.small())
    return style.key(figure, axs.flat, title=curves.band(ds))
