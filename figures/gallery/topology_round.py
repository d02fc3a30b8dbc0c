"""Minima and lowest passes of the plane of a round, their merge tree and persistence diagram (as in LossLens paper)."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.analyses.landscapes.planes import round_plane
from drift.runs.run import Run
from figures.axes import surfaces
from figures.gallery import _runs, _selected
from figures.looks import style
from landscape.surfaces.merge_tree import merge_tree

NEEDS = "a run that kept three clients of a round"

COST = "seconds per run"

MOST = 12
"""Minima that are drawn, the most persistent first."""


@_selected.one_run
def data(
    run: Run, *, round: int = -1, variable: str = "loss", points: int = 31, margin: float = 0.3, split: str = "test"
) -> xr.Dataset:
    """The variable over alpha and beta, and of each minimum (rank) its value, pass, persistence, parent and place.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        round: Round that kept its clients; negative counts from the last one that did.
        variable: loss or error.
        points, margin, split: The plane, as in `drift.round_plane`.
    """
    if not run.kept("clients"):
        raise _runs.missing(f"run {run.name} kept no clients", _runs.KEEP_CLIENTS)
    plane = run.cached(round_plane, round=round, points=points, margin=margin, split=split)
    if variable not in ("loss", "error") or variable not in plane:
        raise ValueError(f"no variable {variable!r}; there are loss and error.")
    tree = merge_tree(plane, metric=variable)
    return plane.assign(tree.data_vars).assign_attrs(variable=variable)


def draw(ds: xr.Dataset) -> Figure:
    """A map with minima (rings, by rank) and passes (crosses), the merge tree, and the diagram of births and ends."""
    figure, axs = style.panels(1, 3, height=2.6, cell=0.75)
    variable = str(ds.attrs["variable"])
    names = [str(name) for name in ds[variable].dims]
    surfaces.contour(ds.drop_dims("rank"), ax=axs[0, 0], variable=variable, bar=True)
    shown = ds.isel(rank=slice(MOST))
    look = {"markeredgecolor": "white", "linestyle": "", "markersize": 6, "zorder": 6}
    for index in range(shown.sizes["rank"]):
        here = shown.isel(rank=index)
        at = [float(here[f"at_{name}"]) for name in names]
        axs[0, 0].plot(*at, "o", **{**look, "markerfacecolor": _COLOURS[index % len(_COLOURS)]})
        note = axs[0, 0].annotate(
            str(index + 1), at, (4, 4), textcoords="offset points", fontsize=style.small(), zorder=7
        )
        note.set_path_effects(style.outline())
        if np.isfinite(float(here["saddle"])):
            over = [float(here[f"saddle_{name}"]) for name in names]
            axs[0, 0].plot(*over, "x", color="white", markersize=4, zorder=6)
    _tree(shown, axs[0, 1], variable, total=ds.sizes["rank"])
    _diagram(shown, axs[0, 2], variable)
    return figure


_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def _tree(ds: xr.Dataset, ax: Axes, variable: str, *, total: int) -> None:
    """A stem per minimum from its value to its end, joined there to the one that it ends in."""
    for index in range(ds.sizes["rank"]):
        here = ds.isel(rank=index)
        low = float(here["minimum"])
        end, colour = low + float(here["persistence"]), _COLOURS[index % len(_COLOURS)]
        ax.plot([index + 1, index + 1], [low, end], "-", color=colour)
        ax.plot(index + 1, low, "o", color=colour, markersize=4)
        if (parent := int(here["parent"])) > 0:
            ax.plot([index + 1, parent], [end, end], "-", color="#777777", linewidth=0.8)
    style.name_axes(ax, "minimum, by persistence", style.text(ds["minimum"]).replace(" at the minimum", ""), integers=6)
    ax.set_xlim(0.4, max(ds.sizes["rank"], 2) + 0.6)
    rest = f", {ds.sizes['rank']} shown" if total > ds.sizes["rank"] else ""
    ax.set_title(f"{total} {'minimum' if total == 1 else 'minima'}{rest}", fontsize=style.small())


def _diagram(ds: xr.Dataset, ax: Axes, variable: str) -> None:
    births, ends = ds["minimum"].values, (ds["minimum"] + ds["persistence"]).values
    low, high = float(births.min()), float(ends.max())
    ax.plot([low, high], [low, high], color="#777777", linewidth=0.8, linestyle="--")
    for index, (birth, end) in enumerate(zip(births, ends, strict=True)):
        ax.plot(birth, end, "o", color=_COLOURS[index % len(_COLOURS)], markersize=5)
    unit = style.text(ds["minimum"]).replace(f"{variable} at the minimum", "").strip()
    style.name_axes(ax, f"{variable} at the minimum {unit}".strip(), f"{variable} at its end {unit}".strip())
    ax.set_title(f"SMAD {float(ds['smad']):.3g}, roughness {float(ds['roughness']):.2g}", fontsize=style.small())
