"""Classes that each round's weights stand for, and how alike they are to all data (FedLAW paper, Fig. 7)."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.labels import heterogeneity
from drift.runs.run import Run
from figures.axes import class_labels, curves
from figures.gallery import _selected
from figures.looks import style

NEEDS = "runs of FedAvg and FedLAW, or of any methods, trained in one setting with label skew"

COST = "seconds"

_SHOWN = {"overlap": "overlap with all data", "cosine": "cosine", "jensen_shannon": r"$1 - JS / \ln 2$"}


@_selected.each_run(select=_selected.preferring("fedavg", "fedlaw-attentive", "fedlaw"))
def data(run: Run) -> xr.Dataset:
    """overlap, cosine, jensen_shannon and cohort_share (also by data size, _data) over algorithm, seed and round.

    Args:
        methods: Which are shown; by default all, of runs to choose from FedAvg and FedLAW, if there. Cohorts
            are drawn for the first two.
    """
    return run.cached(heterogeneity).drop_vars("share")


def draw(ds: xr.Dataset) -> Figure:
    """Classes of the cohorts of one seed, in one scale; below, three similarities, dotted by data size."""
    figure, axs = style.panels(2, 3, height=4.2, stacked=2, cell=0.8)
    algorithms = [str(name) for name, _ in curves.split_algorithms(ds.overlap)]
    shown = [(name, "cohort_share") for name in algorithms[:2]]
    if len(shown) == 1:
        shown.append((algorithms[0], "cohort_share_data"))
    top = max(float(ds[variable].sel(algorithm=name).max()) for name, variable in shown)
    for ax, (name, variable) in zip(axs[0], shown, strict=False):
        values = ds.sel(algorithm=name)
        seed = next(seed for seed in values.seed.values if np.isfinite(values[variable].sel(seed=seed)).any())
        class_labels.class_bars(values.sel(seed=seed), ax=ax, variable=variable, top=top, bar=axs[0, 2])
        how = "weights used" if variable == "cohort_share" else "weights by data size"
        ax.set_title(
            f"{style.label(name)}, {how}" + (f", seed {seed}" if ds.sizes["seed"] > 1 else ""), fontsize=style.small()
        )
    axs[0, 2].set_axis_off()
    if axs[0, 0].containers and ds.sizes["class"] <= 12:  # bars of few rounds
        axs[0, 2].legend(*axs[0, 0].get_legend_handles_labels(), title="class", loc="center left", ncols=2)
    for ax, (variable, label) in zip(axs[1], _SHOWN.items(), strict=True):
        curves.curve(ds, ax=ax, variable=variable, label=label)
        weighted = curves.mean(ds[variable].sel(algorithm=algorithms[0]), "seed")
        plain = curves.mean(ds[f"{variable}_data"].sel(algorithm=algorithms[0]), "seed")
        if not np.allclose(weighted, plain, equal_nan=True):  # else the method's weights are those by data size
            plain = plain.dropna("round")
            ax.plot(plain["round"], plain, color="#555555", linewidth=0.9, linestyle=":", label="weights by data size")
    return style.key(figure, axs[1], title=curves.band(ds))
