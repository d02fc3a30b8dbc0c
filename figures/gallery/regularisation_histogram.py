"""Ratio r of optimisation to regularisation over runs, and how it goes with gamma (FedLAW paper, Fig. 11)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.norms_and_weights import regularisation_ratio_mean
from drift.runs.run import Run
from figures.axes import weights
from figures.gallery import _runs, _stack
from figures.looks import style
from figures.selection import run_selection

NEEDS = "two runs or more, of any settings, of FedLAW (joint or GWS) or another method whose weights do not sum to 1"

COST = "seconds"


def data(runs: Sequence[Run], *, window: tuple[float, float] = (0.45, 0.55)) -> xr.Dataset:
    """ratio and gamma over sample, a run, with its method and name.

    Args:
        window: Rounds that are averaged, as fractions of a run, as in `drift.regularisation_ratio_mean`.
    """
    results = {run.name: (run, run.cached(regularisation_ratio_mean, window=window)) for run in runs}
    shrinking = {name: pair for name, pair in results.items() if np.isfinite(float(pair[1].ratio))}
    if len(shrinking) < 2:
        command = (
            "fedscape train digits-shards2 --set method.name=fedlaw --set method.variant=gws, and with other seeds"
        )
        which = ", ".join(shrinking) or "none"
        raise _runs.missing(f"this takes two runs whose weights do not sum to 1; of {len(runs)} runs: {which}", command)
    run_selection.narrow(runs, [run for run, _ in shrinking.values()], "its weights sum to 1")
    columns = {name: [float(means[name]) for _, means in shrinking.values()] for name in ("ratio", "gamma")}
    ds = xr.Dataset(
        {name: ("sample", values) for name, values in columns.items()},
        coords={
            "run": ("sample", list(shrinking)),
            "algorithm": ("sample", [run.label for run, _ in shrinking.values()]),
        },
    )
    ds.ratio.attrs.update(long_name="ratio r", units="1")
    ds.gamma.attrs.update(long_name=r"shrinking factor $\gamma$", units="1")
    about = f"rounds {window[0]:.0%} to {window[1]:.0%} of each run"
    return _stack.name_runs(ds, [run for run, _ in shrinking.values()]).assign_attrs(about=about)


def draw(ds: xr.Dataset) -> Figure:
    """Histogram (of few runs, dots) with the mean over runs; r against gamma."""
    figure, axs = style.panels(1, 2, height=2.5)
    weights.histogram(ds, ax=axs[0, 0])
    for name in style.order(map(str, ds.algorithm.values)):
        series = ds.isel(sample=ds.algorithm.values == name)
        look: dict[str, Any] = {"color": style.colour(name), "marker": style.marker(name), "label": style.label(name)}
        axs[0, 1].plot(series.gamma, series.ratio, linestyle="", markersize=4, **look)
    axs[0, 1].axvline(1, color="#555555", linewidth=0.6, zorder=1)
    style.name_axes(axs[0, 1], style.text(ds.gamma), style.text(ds.ratio))
    style.logarithmic(axs[0, 1])
    return style.key(figure, axs.flat, title=f"means over {ds.attrs['about']}")
