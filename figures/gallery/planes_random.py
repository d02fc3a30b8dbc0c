"""Loss around each method's final model on a filter-normalised random plane (paper of Li et al. 2018, section 4)."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.landscapes.planes import random_plane
from drift.runs.run import Run
from figures.axes import surfaces
from figures.gallery import _selected, _stack
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting, that kept their last global model"

COST = "seconds per run"


@_selected.each_run("split", select=_selected.of_first_seed)
def data(run: Run, *, points: int = 21, radius: float = 1.0, seed: int = 0, split: str = "test") -> xr.Dataset:
    """loss (nats) and error (fraction) over algorithm, seed, alpha and beta, in filter norms.

    Args:
        points, radius: Grid points per axis, and the largest coordinate.
        seed: Of the two directions, the same for all runs.
        split: Samples of the loss.
    """
    plane = run.cached(random_plane, points=points, radius=radius, seed=seed, split=split)
    return plane[_stack.measured(plane)]


def draw(ds: xr.Dataset) -> Figure:
    """A map per method with common levels; the model stands in the middle."""
    names = style.order(map(str, ds.algorithm.values))
    columns = min(2 if style.is_narrow() else 3 if len(names) in (3, 6) else 5 if len(names) == 5 else 4, len(names))
    rows = -(-len(names) // columns)
    figure, axs = style.panels(
        rows, columns, height=rows * 6.0 / max(columns, 3) + 0.6, stacked=columns, cell=0.85, sharex=True, sharey=True
    )
    levels = surfaces.common_levels(ds.loss, top=1.0)  # in log, so that a sharp model hides no other
    for ax, name in zip(axs.flat, names, strict=False):
        surfaces.contour(ds.sel(algorithm=name).isel(seed=0), ax=ax, levels=levels)
        ax.plot(0, 0, "^", color="black", markeredgecolor="white", markersize=5.5)
        ax.set_aspect("equal")
        halves = np.array([-0.5, 0.0, 0.5])  # as many at any size
        ax.set(xticks=float(ds.alpha.max()) * halves, yticks=float(ds.beta.max()) * halves)
        ax.set_title(style.label(name), fontsize=style.small())
        style.name_axes(ax, "u", "v")
    style.name_edges(axs, len(names))
    figure.supxlabel("coordinates along u and v, in norms of the filters", fontsize=style.small())
    empty = axs.flat[len(names)] if len(names) < axs.size else None
    surfaces.colorbar(figure, axs.flat, levels, f"{ds.attrs['split']} {style.text(ds.loss)}", inside=empty)
    return figure
