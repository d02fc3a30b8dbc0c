"""Cost of each method: multiply-accumulates, seconds, memory and bytes of a round (LSS paper, Table 5)."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift.cost import cost
from drift.run import Run
from figures import quality, style
from figures.curves import mean
from figures.gallery import _stack

NEEDS = "runs of any methods, trained in one setting, that kept a global model and what its clients received"

COLUMNS = {
    "macs": ("forward pass\nof a sample", "MAC"),
    "macs_training": ("by pool size\n(paper)", "MAC"),
    "macs_round": ("local training\nof a client", "MAC"),
    "seconds_epoch": ("an epoch\nof a client", "s"),
    "seconds_round": ("local training\nof a client", "s"),
    "memory_round": ("memory\nof a client", "B"),
    "bytes_up": ("upload\nof a round", "B"),
    "bytes_down": ("download\nof a round", "B"),
}


def data(runs: Sequence[Run], *, round: int = -1, repeats: int = 1) -> xr.Dataset:
    """macs, macs_training, macs_round, seconds, bytes and memory over algorithm and seed.

    Args:
        round: Round whose largest client is trained again; negative counts from the last one kept.
        repeats: Measured trainings.
    """
    chosen = _stack.comparable(runs)
    first = min(run.experiment.seed for run in chosen)
    once = [run for run in chosen if run.experiment.seed == first]
    return _stack.stacked(once, lambda run: run.cached(cost, round=round, repeats=repeats))


@style.styled
def draw(ds: xr.Dataset) -> Figure:
    """A table, one method a row."""
    names = [str(name) for name in ds.algorithm.values]
    cells = [
        [_written(float(mean(ds[key].sel(algorithm=name), "seed")), unit) for key, (_, unit) in COLUMNS.items()]
        for name in names
    ]
    figure, axs = style.panels(1, 1, height=0.75 + 0.21 * len(names))
    heads = ["method", *(text for text, _ in COLUMNS.values())]
    quality.table([style.label(name) for name in names], heads, cells, ax=axs[0, 0])
    axs[0, 0].set_title("training counts forward and backward passes; bytes are those of the whole cohort", fontsize=7)
    return figure


def _written(value: float, unit: str) -> str:
    """Three digits with a decimal prefix; seconds below one in ms."""
    if value != value:
        return "-"
    if unit == "s":
        return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"
    for power, prefix in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if value >= 10**power:
            return f"{value / 10**power:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
