"""Loss barriers between clients and the global model, and what averaging two gives (Frankle et al. 2020)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from drift.analyses.landscapes.barriers import client_barriers
from drift.runs.run import Run
from figures.axes import matrices, surfaces
from figures.gallery import _runs, _selected, _stack
from figures.looks import style, words

NEEDS = "one run that kept the clients of a round with two clients or more"

COST = "seconds per run"


@_selected.one_run
def data(run: Run, *, rounds: Sequence[int] | None = None, points: int = 11, most: int = 8) -> xr.Dataset:
    """barrier and midpoint over panel, mark and mark_other, with the names of each panel.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        rounds: By default the first, a middle and the last one that kept its clients.
        points: Evaluations on each line.
        most: Clients per round.
    """
    indices = _runs.rounds_with_clients(run, least=2, count=3, rounds=rounds)
    cohorts = [run.round(index).ids.tolist() for index in indices]
    count = min([most, *map(len, cohorts)])
    if count < 2:
        raise _runs.missing(f"run {run.name} kept no round with two clients", _runs.KEEP_CLIENTS)
    return _stack.join_panels(
        (f"round {index}", run.cached(client_barriers, round=index, clients=ids[:count], points=points))
        for index, ids in zip(indices, cohorts, strict=True)
    )


def draw(ds: xr.Dataset) -> Figure:
    """One matrix per round: barriers, where there are any, and the loss of two models' mean minus their mean loss."""
    count, variables = ds.sizes["panel"], shown_variables(ds)
    height = len(variables) * ((style.WIDE - 1.2) / max(count, 2) + 0.3) + 0.2
    close: dict[str, Any] = {"turned": True, "cell": 0.8} if len(variables) > 1 else {"stacked": 2, "cell": 0.85}
    figure, rows = style.panels(len(variables), count, height=height, **close)
    all_looks = looks(ds)
    for row, variable in zip(rows, variables, strict=True):
        for panel, ax in zip(_stack.panels(ds), row, strict=True):
            mesh = matrix(panel, variable, ax, all_looks[variable])
            ax.set_title(panel.attrs["label"])
            style.name_axes(ax, "client", "client")
        free = [ax for ax in figure.axes if not ax.axison]
        last = [ax for ax in row if free or style.is_beside(ax, row[-1])]
        levels, how = np.linspace(*mesh.get_clim(), 9), {"inside": free[0]} if free else {"below": last}
        surfaces.colorbar(figure, last, levels, style.text(ds[variable]), cmap=mesh.cmap, **how)
    if variables == ["midpoint"]:
        figure.supxlabel(without_barriers(ds), fontsize=style.small())
    return figure


NO_BARRIER = 1e-3
"""Loss up to which a barrier counts as none."""


def shown_variables(ds: xr.Dataset) -> list[str]:
    """The barriers, unless all are 0 while the midpoints are not, and the midpoints."""
    flat = float(ds.barrier.max()) <= NO_BARRIER and float(abs(ds.midpoint).max()) > NO_BARRIER
    return ["midpoint"] if flat else ["barrier", "midpoint"]


def without_barriers(ds: xr.Dataset) -> str:
    """The sentence in place of matrices of zeros."""
    known = ds.barrier.notnull().transpose(..., "mark", "mark_other").values
    pairs = int(np.triu(known, 1).sum())
    limit = style.in_words(f"{NO_BARRIER:g}", ds.barrier)
    sentence = f"no loss barrier above {limit} between any of {pairs} pairs; shown: what averaging two models gives"
    return "\n".join(words.even_lines(sentence, 50 if style.is_narrow() else 200))


LEAST = 0.01
"""Least reach of a colour scale."""


def looks(ds: xr.Dataset) -> dict[str, dict[str, Any]]:
    """Colours of barriers, from 0 on, and of midpoints, as on a map of the loss; on both sides of 0 with both signs."""
    low, high = float(ds.midpoint.min()), float(ds.midpoint.max())
    reach = max(-low, high, LEAST)
    both = low < -NO_BARRIER and high > NO_BARRIER
    ends = {"low": -reach if low < -NO_BARRIER else 0.0, "high": reach if both or low >= -NO_BARRIER else 0.0}
    midpoint = {"cmap": style.SIGNED} if both else {}
    return {"barrier": {"high": max(float(ds.barrier.max()), LEAST)}, "midpoint": {**midpoint, **ends}}


def matrix(ds: xr.Dataset, variable: str, ax: Axes, look: dict[str, Any]) -> AxesImage:
    """The variable over pairs of models; numbers in the cells where there are few."""
    names = [str(name).removeprefix("client ") for name in ds.mark.values]
    values = ds[variable].assign_coords(mark=names, mark_other=names).transpose("mark_other", "mark")
    matrices.matrix(values, ax=ax, bar=False, **look)
    ax.tick_params(length=0)
    ax.tick_params(axis="x", rotation=90 if len(names) > 4 else 0)
    return ax.images[0]
