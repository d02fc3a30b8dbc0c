"""Labels of the clients and of each round's cohort (FedEve paper, Fig. 3a; FedLAW paper, Figs. 7 and 13)."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.partitions import histogram
from drift.runs.run import Run
from drift.training.data import Data
from figures.axes import class_labels
from figures.gallery import _selected
from figures.looks import style
from figures.selection.partition_text import partition_label

NEEDS = "one run of any method"

COST = "seconds"


@_selected.one_run
def data(run: Run, *, rounds: int = 30) -> xr.Dataset:
    """count (samples) over client and class; cohort_share (fraction) over round and class; share over class.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        rounds: Rounds whose cohorts are shown, from the first.
    """
    cohorts = {index: run.cohort(index) for index in run.rounds()[:rounds]}
    return table(run.dataset, cohorts).assign_attrs(partition=partition_label(run))


def table(data: Data, cohorts: Mapping[int, np.ndarray]) -> xr.Dataset:
    """What `data` holds, of any data and the cohorts of some rounds, by round."""
    counts = histogram(data.labels, data.parts, len(data.class_names))
    mixed = np.stack([counts[cohort].sum(0) for cohort in cohorts.values()]).astype(float)
    about = {"long_name": "share of the class in the cohort's data", "units": "fraction"}
    return xr.Dataset(
        {
            "count": (("client", "class"), counts, {"long_name": "samples", "units": "samples"}),
            "cohort_share": (("round", "class"), mixed / np.maximum(mixed.sum(1, keepdims=True), 1), about),
            "share": ("class", counts.sum(0) / counts.sum(), {"long_name": "share of the class", "units": "fraction"}),
        },
        coords={"client": np.arange(len(counts)), "class": list(data.classes), "round": list(cohorts)},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Bubbles for the clients, a map of shares for the cohorts."""
    height = 2.6 if ds.sizes["class"] <= 12 else 4.5
    figure, axs = style.panels(1, 2, height=height)
    class_labels.bubbles(ds, ax=axs[0, 0], largest=min(60.0, 1600 / ds.sizes["client"], 2000 / ds.sizes["class"]))
    most = f"largest bubble: {int(ds['count'].max()):,} samples"
    axs[0, 0].set_title(f"{style.literal(ds.attrs['partition'])}; {most}", fontsize=style.small())
    class_labels.class_bars(ds, ax=axs[0, 1], top=float(ds.cohort_share.max()))
    return figure
