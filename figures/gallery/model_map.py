"""A map of models of several runs: their basins, barriers between these, and the mean to take (this project)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from scipy.spatial import ConvexHull, QhullError

from drift.analyses.landscapes.model_map import model_map
from drift.runs.run import Run
from figures.gallery import _runs, _stack
from figures.looks import style
from figures.selection import run_selection

NEEDS = "one run or several of one model and data, in one folder, that kept clients or global models of some rounds"

COST = "a minute for three runs"

TINTS = ("#d9d9d9", "#f0d9c4", "#cfe3ee", "#dfead2", "#e8dcea")
"""Fills of basins, all pale; their numbers tell them apart."""


def data(
    runs: Sequence[Run],
    *,
    most: int = 3,
    rounds: int = 2,
    margin: float = 0.1,
    aligned: bool = False,
    samples: int = 1000,
) -> xr.Dataset:
    """Places, basins and the chosen mean over mark, and barriers between basins, of up to `most` runs.

    Args:
        most: Number of runs: that of the first method with the smallest seed, then other methods with this seed, then
            other seeds.
        rounds: The last so many rounds that kept clients, or global models where there are no clients.
        margin, aligned, samples: As in `drift.model_map`.
    """
    comparable = _runs.select_comparable(runs)
    kept = [run for run in comparable if run.kept("clients") or run.kept("globals")]
    if not kept:
        raise _runs.missing("no run kept models", _runs.KEEP_CLIENTS)
    order = style.order(run.label for run in kept)
    kept.sort(key=lambda run: (run.experiment.seed, order.index(run.label)))
    seeds = [
        next((run for run in kept if run.experiment.seed == seed), kept[0])
        for seed in {r.experiment.seed for r in kept}
    ]
    first, *others = dict.fromkeys([*kept[:1], *kept[1 : most - 1], *seeds, *kept])
    shown = [first, *others[: most - 1]]
    run_selection.narrow(comparable, shown, f"this figure shows {most} runs; give a larger number as most")
    indices = (first.kept("clients") or first.kept("globals"))[-rounds:]
    options = {"rounds": indices, "margin": margin, "aligned": aligned, "samples": samples}
    ds = first.cached(model_map, others=[run.folder.name for run in shown[1:]], **options)
    labels = {"": first, **{run.folder.name: run for run in shown[1:]}}
    owners = [labels[str(name).rpartition(": ")[0]] for name in ds.mark.values]
    about = {"long_name": "run", "units": "1"}
    texts = [f"{run.label} {run.experiment.seed}" for run in owners]
    names = list(dict.fromkeys(texts))
    further = [
        name for at, name in enumerate(names) if name.rpartition(" ")[0] in {n.rpartition(" ")[0] for n in names[:at]}
    ]
    ds = ds.assign(mark_run=("mark", np.array(texts, dtype=object), about)).assign_attrs(hollow=", ".join(further))
    return _stack.name_runs(ds, shown)


def draw(ds: xr.Dataset) -> Figure:
    """All models, and beside them those of the basin of the chosen mean; one panel where there is one basin."""
    several = ds.sizes["basin"] > 1
    figure, axs = style.panels(1, 1 + several, height=3.1, cell=0.8)
    present = ds.isel(mark=np.flatnonzero(ds.mark_basin.notnull().values))
    chosen = int(present.mark_basin[int(present.mark_chosen.values.argmax())])
    if several:
        _basins(present, axs[0, 0])
        _models(present, ("mark_alpha", "mark_beta"), axs[0, 0], rings=False)
        _name(ds, axs[0, 0], "all models")
    inside = present.isel(mark=np.flatnonzero(present.mark_basin.values == chosen))
    _models(inside, ("mark_near_alpha", "mark_near_beta"), axs[0, -1], rings=True)
    judged = ds.judged_loss.sel(candidate=ds.attrs["chosen"])
    reference = ds.judged_loss.isel(candidate=-1)
    words = f"basin {chosen}: mean of {int(present.mark_chosen.sum())} ringed models"
    _name(ds, axs[0, -1], f"{words}\nloss {float(judged):.3f}; {reference.candidate.item()}: {float(reference):.3f}")
    lost = ds.attrs["diverged"]
    title = f"diverged, not on the map: {lost}" if lost else ""
    return style.key(figure, axs.flat, title=title, columns=3)


def _name(ds: xr.Dataset, ax: Axes, title: str) -> None:
    ax.set_title(title, fontsize=style.small())
    style.name_axes(ax, "first principal coordinate", "second principal coordinate")
    ax.set_aspect("equal", adjustable="datalim")
    ax.grid(False)


def _models(ds: xr.Dataset, places: tuple[str, str], ax: Axes, *, rings: bool) -> None:
    """Clients small, global models large with a black edge, colour and marker of their method; rings: the chosen."""
    clients = np.array(["client" in str(name).rpartition(": ")[2] for name in ds.mark.values])
    x, y = (ds[name].values for name in places)
    for run in dict.fromkeys(ds.mark_run.values.tolist()):
        method, _, seed = run.rpartition(" ")
        own, colour = ds.mark_run.values == run, style.colour(method)
        look = {
            "facecolors": "white" if run in ds.attrs["hollow"].split(", ") else colour,
            "marker": style.marker(method),
        }
        label = f"{style.label(method)}, seed {seed}"
        ax.scatter(
            *(values[own & clients] for values in (x, y)), s=11, edgecolors=colour, linewidths=0.7, label=label, **look
        )
        ax.scatter(
            *(values[own & ~clients] for values in (x, y)), s=34, edgecolors="black", linewidths=1.0, zorder=4, **look
        )
    ax.scatter([], [], s=34, facecolors="#bbbbbb", edgecolors="black", linewidths=1.0, label="global model")
    if rings:
        picked = ds.mark_chosen.values == 1
        ax.scatter(x[picked], y[picked], s=52, facecolors="none", edgecolors="black", linewidths=0.6, zorder=5)


def _basins(ds: xr.Dataset, ax: Axes) -> None:
    """Tinted hulls, wide enough to be seen around models that lie close, and dashed lines with the barriers."""
    points = np.stack([ds.mark_alpha.values, ds.mark_beta.values], 1)
    reach = 0.05 * float(np.ptp(points, axis=0).max() or 1.0)
    circle = reach * np.stack([np.cos(turns := np.linspace(0, 2 * np.pi, 24, endpoint=False)), np.sin(turns)], 1)
    centres = {}
    for number in ds.basin.values.tolist():
        own = points[ds.mark_basin.values == number]
        centres[number] = own.mean(0)
        around = (own[:, None] + circle).reshape(-1, 2)
        tint = TINTS[(number - 1) % len(TINTS)]
        ax.add_patch(Polygon(_hull(around), facecolor=tint, edgecolor="#555555", linewidth=0.6, zorder=0))
        top = centres[number] + [0, reach + np.ptp(own[:, 1]) / 2]
        ax.annotate(f"basin {number}", top, (0, 2), textcoords="offset points", ha="center", fontsize=style.small())
    for first, second in ((a, b) for a in centres for b in centres if a < b):
        (x0, y0), (x1, y1) = centres[first], centres[second]
        ax.plot([x0, x1], [y0, y1], color="#555555", linestyle="--", linewidth=0.7, zorder=1)
        barrier = float(ds.basin_barrier.sel(basin=first, basin_other=second))
        note = ax.annotate(f"barrier {barrier:.2g}", ((x0 + x1) / 2, (y0 + y1) / 2), (0, 3), textcoords="offset points")
        note.set(ha="center", size=style.small(), path_effects=style.outline(), zorder=6)


def _hull(points: np.ndarray) -> np.ndarray:
    try:
        return points[ConvexHull(points).vertices]
    except QhullError:  # models on one line, and no circle around them
        return points
