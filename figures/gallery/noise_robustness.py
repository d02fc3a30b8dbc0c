"""Accuracy that each method's final model loses under noise on its inputs (LSS paper, Table 6)."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.landscapes.model_quality import noise_robustness
from drift.runs.run import Run
from figures.axes import curves, model_quality
from figures.gallery import _selected
from figures.looks import style
from landscape.measures.robustness import LEVELS

NEEDS = "runs of any methods, trained in one setting, that kept their last global model"

COST = "seconds per run"


@_selected.each_run("draws")
def data(run: Run, *, levels: Sequence[float] = LEVELS, draws: int = 3, split: str = "test") -> xr.Dataset:
    """accuracy and drop (fractions) over algorithm, seed and, for drop, value, the amplitude of the noise.

    Args:
        levels: Amplitudes, as fractions of an input's range.
        draws: Noises averaged.
        split: Samples of the accuracy.
    """
    drops = run.cached(noise_robustness, levels=list(levels), draws=draws, split=split)
    return drops[["accuracy", "drop"]]


def draw(ds: xr.Dataset) -> Figure:
    """Accuracy without noise, and what is lost of it at each amplitude, in percentage points."""
    figure, axs = style.panels(1, 2, height=2.5, width_ratios=(1, 2))
    model_quality.bars(ds.accuracy.expand_dims("mark"), ax=axs[0, 0], over="mark", ticks=["no noise"])
    style.name_axes(axs[0, 0], "test inputs", "accuracy")
    model_quality.bars(
        100 * ds["drop"], ax=axs[0, 1], over="value", ticks=[f"{255 * value:.3g}/255" for value in ds.value]
    )
    curves.mark_level(axs[0, 1])
    noise = f"amplitude of uniform noise on inputs in [0, 1], mean of {ds.attrs['draws']} draws"
    style.name_axes(axs[0, 1], noise, "accuracy drop [points]")
    return style.key(figure, axs.flat, title=curves.band(ds))
