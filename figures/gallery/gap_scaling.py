"""Gap between averaging models and averaging outputs against the clients' spread (IMA paper, lemma 1)."""

from fractions import Fraction

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from drift.analyses import per_round
from drift.analyses.decomposition import gap
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _runs, _selected
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting, that kept the clients of some rounds"

COST = "seconds per run"


@_selected.each_run()
def data(run: Run, *, rounds: int = 6, samples: int = 500) -> xr.Dataset:
    """gap over algorithm, seed, round and scale; slope over algorithm, seed and round.

    Args:
        rounds: How many rounds are evaluated, evenly spaced among those that kept clients.
        samples: Test samples that the gap is averaged over.
    """
    indices = per_round.evenly_spaced(_runs.kept_clients(run), rounds)
    return run.cached(gap.gap_scaling, rounds=indices, samples=samples, outputs="probabilities")[["gap", "slope"]]


def draw(ds: xr.Dataset) -> Figure:
    """The gap of the first method against the scale, one line per round, with a line of slope 2; slopes over rounds."""
    figure, axs = style.panels(1, 2, height=2.5)
    name, values = curves.split_algorithms(ds["gap"])[0]
    _against_scale(values, axs[0, 0])
    axs[0, 0].set_title(style.label(str(name)), fontsize=style.small())
    curves.curve(ds, ax=axs[0, 1], variable="slope", marker="o", markersize=2.5)
    axs[0, 1].axhline(2, color="#777777", linewidth=0.8, linestyle="--", label="slope 2 (lemma 1)")
    axs[0, 1].set_ylabel("log-log slope of the gap")
    axs[0, 1].set_ylim(min(1.0, axs[0, 1].get_ylim()[0]), max(2.2, axs[0, 1].get_ylim()[1]))
    return style.key(figure, axs[0, 1:], title=curves.band(ds))


def _against_scale(values: xr.DataArray, ax: Axes) -> None:
    middle = curves.mean(values, "seed")
    for colour, number in zip(style.steps(values.sizes["round"]), values["round"].values, strict=True):
        line = middle.sel(round=number)
        ax.plot(line.scale, line, color=colour, marker="o", markersize=2.5, label=f"round {number}")
    top = float(np.nanmax(middle))
    ax.plot(
        middle.scale, top * (middle.scale / middle.scale.max()) ** 2, color="#777777", linestyle="--", linewidth=0.8
    )
    ax.legend(loc="lower right", fontsize=style.small(), handlelength=1.2, labelspacing=0.2)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: str(Fraction(value).limit_denominator(64))))
    style.logarithmic(ax)
    style.name_axes(ax, "part $s$ of the clients' distance to their mean", r"$\|f_{WENS}-f_{FMA}\|$ (probabilities)")
