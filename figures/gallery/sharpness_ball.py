"""Worst, one-step and mean rise of the loss in balls around each final model (metric of the SAM and ASAM papers)."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.landscapes.model_quality import ball_sharpness
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _selected
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting, that kept their last global model"

COST = "seconds per run"


@_selected.each_run("split", "adaptive")
def data(
    run: Run,
    *,
    radii: Sequence[float] = (0.05, 0.1, 0.2),
    steps: int = 10,
    directions: int = 10,
    adaptive: bool = False,
    split: str = "train",
) -> xr.Dataset:
    """worst, one_step and mean over algorithm, seed and value, the radius.

    Args:
        radii: Of the balls, parameter-space length.
        steps, directions: Gradients of the ascent, and random points.
        adaptive: Balls in units of the parameters, as ASAM has them.
        split: Samples of the loss.
    """
    options = {"steps": steps, "directions": directions, "adaptive": adaptive, "split": split}

    return run.cached(ball_sharpness, radii=list(radii), **options)[["worst", "one_step", "mean"]]


def draw(ds: xr.Dataset) -> Figure:
    """Three rises over the radius."""
    figure, axs = style.panels(1, 3, height=2.5)
    names = {"worst": "worst", "one_step": "one gradient step", "mean": "random directions, mean"}
    length = "radius [multiples of the parameters]" if ds.attrs["adaptive"] else "radius"
    for ax, (variable, name) in zip(axs.flat, names.items(), strict=True):
        positive = bool(np.nanmin(ds[variable].values) > 0)
        curves.curve(ds, ax=ax, variable=variable, over="value", log=positive, marker="o", markersize=2.5)
        style.name_axes(ax, length, "")
        ax.set_title(name, fontsize=style.small())
    for ax in axs.flat:
        ax.set_ylabel(style.with_unit(f"rise of the {ds.attrs['split']} loss", ds.worst))
    return style.key(figure, axs.flat, title=curves.band(ds))
