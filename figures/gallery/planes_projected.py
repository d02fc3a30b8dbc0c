"""A cohort above the plane of three of its models: where the map misleads (a plane as in IMA paper, Fig. 1)."""

from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.analyses.landscapes.projected_plane import projected_plane
from drift.runs.run import Run
from figures.axes import surfaces
from figures.axes.fit import NAME
from figures.gallery import _planes, _selected
from figures.looks import style

NEEDS = "one run with three or more clients per round, that kept the clients of some round"

COST = "seconds per run"


@_selected.one_run
def data(run: Run, *, round: int | None = None, points: int = 21, split: str = "test") -> xr.Dataset:
    """loss (nats) over alpha and beta; place, distance, own loss and foot_loss (nats) of every model (mark).

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        round: By default the last one that kept its clients.
        points: Grid points per axis.
        split: Samples of the loss.
    """
    return run.cached(projected_plane, points=points, split=split, **_planes.of_round(run, round))


def draw(ds: xr.Dataset) -> Figure:
    """The map with all models in the colours of their own losses; own and shown loss over the distance."""
    figure, (row,) = style.panels(1, 2, height=3.0, width_ratios=(1.3, 1), cell=0.75)
    levels = surfaces.common_levels(ds.loss, ds.mark_loss, top=1.0)
    surfaces.contour(ds, ax=row[0], levels=levels, marks=False)
    scale = {"cmap": style.sequential(), "norm": surfaces.norm(levels), "edgecolors": "white", "zorder": 5}
    off = ds.in_plane.values == 0
    for marks, marker, size in ((ds.isel(mark=~off), "^", 42), (ds.isel(mark=off), "o", 34)):
        row[0].scatter(marks.mark_alpha, marks.mark_beta, size, marks.mark_loss, marker=marker, linewidths=1.0, **scale)
    row[0].set_title("marks have the colour of the model's own loss", fontsize=style.small())
    places = np.stack([ds.mark_alpha.values, ds.mark_beta.values], 1)
    gaps = np.linalg.norm(places[:, None] - places, axis=-1) + np.diag(np.full(len(places), np.inf))
    led = np.isin(ds.mark.values, ["start", "global"])  # names at the end of a line leave the places free
    free = (np.where(led, np.inf, gaps).min(1) > 0.08 * np.ptp(ds.alpha.values)) | led
    for name, (x, y), aside in zip(ds.mark.values[free], places[free], led[free], strict=True):
        look = _LED | {"xytext": (-26, 20 if y > places[led, 1].mean() else -20)} if aside else _OVER
        note = row[0].annotate(_short(name), (x, y), textcoords="offset points", zorder=6, **look)
        note.set(path_effects=style.outline(), fontsize=style.small(), gid=NAME)
    surfaces.colorbar(figure, row[:1], levels, style.text(ds.loss))
    _gaps(ds, row[1])
    return style.key(figure, row[1:])


_LINE = {"arrowstyle": "-", "color": "white", "linewidth": 0.7, "shrinkA": 0, "shrinkB": 3}
_OVER: Any = {"xytext": (0, 5), "ha": "center", "va": "bottom"}
_LED: Any = {"ha": "right", "va": "center", "arrowprops": _LINE}
"""Places of names over models, and beside those that are close to each other and to clients, with lines to them."""


def _gaps(ds: xr.Dataset, ax: Axes) -> None:
    """Each model's own loss and the loss at its foot, joined, over its distance out of the plane."""
    ax.vlines(ds.distance, ds.foot_loss, ds.mark_loss, colors=style.CLIENT, linewidth=1.0, zorder=2)
    on, off = (ds.isel(mark=ds.in_plane.values == inside) for inside in (1, 0))
    ax.plot(on.distance, on.mark_loss, "^", color=style.GLOBAL, markersize=5, label="model that spans the plane")
    ax.plot(off.distance, off.mark_loss, "o", color=style.GLOBAL, markersize=4, label="model beside the plane")
    hollow: dict[str, Any] = {"color": mpl.rcParams["axes.facecolor"], "markeredgecolor": style.GLOBAL, "markersize": 4}
    ax.plot(off.distance, off.foot_loss, "o", label="its foot on the plane", **hollow)
    for name, x, y in zip(ds.mark.values, ds.distance.values, ds.mark_loss.values, strict=True):
        ax.annotate(_short(name), (x, y), (4, 0), textcoords="offset points", fontsize=style.small(), va="center")
    ax.margins(x=0.12)
    style.name_axes(ax, style.text(ds.distance), style.text(ds.loss))
    ax.yaxis.set_label_position("right")  # beside the colour bar its label would be read as that of the bar
    ax.yaxis.tick_right()
    style.logarithmic(ax)


def _short(name: object) -> str:
    return str(name).removeprefix("client ")
