"""A map of models of several runs: their basins, barriers between these, and the mean to take (this project)."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from scipy.spatial import ConvexHull

from drift.analyses.landscapes.model_map import ROUNDS, model_map
from drift.runs.run import Run
from figures.gallery import _runs, _stack
from figures.looks import style
from figures.selection import run_selection

NEEDS = "one run or several of one model and data, in one folder, that kept clients or global models of some rounds"

COST = "a minute per run"

TINTS = ("#d9d9d9", "#f0d9c4", "#cfe3ee", "#dfead2", "#e8dcea")
"""Fills of basins, all pale; their numbers tell them apart."""


def data(
    runs: Sequence[Run], *, most: int = 3, rounds: int = ROUNDS, margin: float = 0.1, aligned: bool = False
) -> xr.Dataset:
    """Places, basins and the chosen mean over mark, and barriers between basins, of up to `most` runs.

    Args:
        most: Number of runs, the first methods and seeds.
        rounds: The last so many rounds that kept clients, or global models where there are no clients.
        margin, aligned: As in `drift.model_map`.
    """
    comparable = _runs.select_comparable(runs)
    suited = [run for run in comparable if run.kept("clients") or run.kept("globals")]
    if not suited:
        raise _runs.missing("no run kept models", _runs.KEEP_CLIENTS)
    methods, seeds = style.order(run.label for run in suited), sorted({run.experiment.seed for run in suited})
    suited.sort(key=lambda run: methods.index(run.label) + seeds.index(run.experiment.seed))
    first, *others = suited[:most]
    run_selection.narrow(comparable, suited[:most], f"this figure shows {most} runs; give a larger number as most")
    options = {"rounds": (first.kept("clients") or first.kept("globals"))[-rounds:], "margin": margin}
    ds = first.cached(model_map, others=[run.folder.name for run in others], aligned=aligned, **options)
    owners = {"": first, **{run.folder.name: run for run in others}}
    shown = [owners[str(name).rpartition(": ")[0]] for name in ds.mark.values]
    texts = np.array([f"{run.label} {run.experiment.seed}" for run in shown], dtype=object)
    ds = ds.assign(mark_run=("mark", texts, {"long_name": "run", "units": "1"}))
    return _stack.name_runs(ds, suited[:most])


def draw(ds: xr.Dataset) -> Figure:
    """All models, and beside them those of the basin of the chosen mean; one panel where there is one basin."""
    if not np.nanmax(ds.distance) > np.nanmin(ds.distance):
        raise LookupError("all models are equal; a map shows models that differ.")
    figure, axs = style.panels(1, 1 + (ds.sizes["basin"] > 1), height=3.1, cell=0.8)
    present = ds.isel(mark=np.flatnonzero(ds.mark_basin.notnull().values))
    averaged = present.mark_chosen.values == 1
    number = int(present.mark_basin.values[averaged][0])
    if axs.size > 1:
        _basins(present, axs[0, 0])
        _models(present, ("mark_alpha", "mark_beta"), axs[0, 0], present.mark_basin.values > 0, averaged | True)
        axs[0, 0].set_title("all models", fontsize=style.small())
    inside = present.mark_basin.values == number
    _models(present, ("mark_near_alpha", "mark_near_beta"), axs[0, -1], inside, averaged)
    losses = {str(name): float(value) for name, value in zip(ds.candidate.values, ds.judged_loss.values, strict=True)}
    words = f"basin {number}: loss {losses[ds.attrs['chosen']]:.3f} at the mean of {averaged.sum()}\nof {inside.sum()}"
    words += f" models (others pale), {list(losses.values())[-1]:.3f} at {list(losses)[-1]}"
    axs[0, -1].set_title(words, fontsize=style.small())
    for ax in axs.flat:
        style.name_axes(ax, "first principal coordinate", "second principal coordinate")
        ax.set_aspect("equal", adjustable="datalim")
        ax.grid(False)
    lost = ds.attrs["diverged"]
    return style.key(figure, axs.flat, title=f"diverged, not on the map: {lost}" if lost else "", columns=3)


def _models(ds: xr.Dataset, places: tuple[str, str], ax: Axes, shown: np.ndarray, strong: np.ndarray) -> None:
    """Clients small, global models large with a black edge, in colour and marker of their method; hollow from the
    second seed of a method on, pale where not strong. A cross marks the mean of a part that is strong."""
    clients = np.array(["client" in str(name).rpartition(": ")[2] for name in ds.mark.values])
    runs, (x, y) = ds.mark_run.values, (ds[name].values for name in places)
    leading = {run.rpartition(" ")[0]: run for run in runs[::-1]}
    for run in dict.fromkeys(runs[shown].tolist()):
        method, _, seed = run.rpartition(" ")
        colour = style.colour(method)
        look: dict[str, Any] = {
            "facecolors": colour if leading[method] == run else "white",
            "marker": style.marker(method),
        }
        small, large = ((runs == run) & shown & kind for kind in (clients, ~clients))
        label = f"{style.label(method)}, seed {seed}"
        for marks, alpha, text in ((strong, 1.0, label), (~strong, 0.3, "")):
            first, second = (np.flatnonzero(kind & marks) for kind in (small, large))
            ax.scatter(x[first], y[first], s=13, edgecolors=colour, linewidths=0.7, alpha=alpha, label=text, **look)
            ax.scatter(x[second], y[second], s=34, edgecolors="black", zorder=4, alpha=alpha, **look)
    ax.scatter([], [], s=34, facecolors="#bbbbbb", edgecolors="black", linewidths=1.0, label="global model")
    if not strong.all():
        mean: dict[str, Any] = {"color": "white", "markeredgecolor": "black", "markersize": 8, "zorder": 6}
        ax.plot(x[strong].mean(), y[strong].mean(), "X", linestyle="", label="mean to take", **mean)


def _basins(ds: xr.Dataset, ax: Axes) -> None:
    """Tinted hulls, wide enough to be seen around models that lie close, and dashed lines with the barriers."""
    points = np.stack([ds.mark_alpha.values, ds.mark_beta.values], 1)
    reach, turns = 0.05 * float(np.ptp(points, axis=0).max() or 1.0), np.linspace(0, 2 * np.pi, 24, endpoint=False)
    circle, centres = reach * np.stack([np.cos(turns), np.sin(turns)], 1), {}
    for number in ds.basin.values.tolist():
        members = points[ds.mark_basin.values == number]
        centres[number] = members.mean(0)
        around = (members[:, None] + circle).reshape(-1, 2)
        hull, tint = around[ConvexHull(around).vertices], TINTS[(number - 1) % len(TINTS)]
        ax.add_patch(Polygon(hull, facecolor=tint, edgecolor="#555555", linewidth=0.6, zorder=0))
        top = (centres[number][0], float(hull[:, 1].max()))
        ax.annotate(f"basin {number}", top, (0, 2), textcoords="offset points", ha="center", fontsize=style.small())
    for first, second in combinations(centres, 2):
        ends = np.stack([centres[first], centres[second]])
        ax.plot(*ends.T, color="#555555", linestyle="--", linewidth=0.7, zorder=1)
        text = f"barrier {float(ds.basin_barrier.sel(basin=first, basin_other=second)):.2g}"
        note = ax.annotate(text, tuple(ends.mean(0)), (0, 3), textcoords="offset points", ha="center")
        note.set(size=style.small(), path_effects=style.outline(), zorder=6)
