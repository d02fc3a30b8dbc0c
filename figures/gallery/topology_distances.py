"""Distances between the planes of rounds and methods: of their basins and of their shapes (as in LossLens paper)."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses import per_round
from drift.analyses.landscapes.planes import round_plane
from drift.runs.run import Run
from figures.axes.matrices import matrix
from figures.gallery import _runs, _selected, _stack
from figures.looks import look, style
from figures.selection import run_selection
from landscape.surfaces.surface_distances import surface_distances

NEEDS = "runs of any methods with three or more clients per round, trained in one setting, that kept clients of rounds"

COST = "seconds per run"


def data(runs: Sequence[Run], *, rounds: int = 3, points: int = 21, split: str = "test") -> xr.Dataset:
    """wasserstein, bottleneck and aligned (nats) over mark and mark_other, "METHOD ROUND", of the smallest seed.

    Args:
        rounds: How many rounds of each method are compared, evenly spaced.
        points: Grid points per axis of a plane.
        split: Samples that the loss is averaged over.
    """
    once = _selected.of_first_seed(runs)
    selected: Sequence[Run] = [run for run in once if run.kept("clients", least=3)]
    if not selected:
        raise _runs.missing("no run kept rounds with three clients", _runs.KEEP_CLIENTS)
    selected = run_selection.narrow(once, selected, "this figure shows runs that kept clients")
    planes = {}
    names = run_selection.line_names(selected)
    for name in style.order(names.values()):
        for run in (run for run in selected if names[run.folder] == name):
            for index in per_round.evenly_spaced(_runs.kept_clients(run, least=3), rounds):
                plane = run.cached(round_plane, round=index, points=points, split=split)
                planes[f"{look.label(name)} {index}"] = plane
    if len(planes) < 2:
        raise _runs.missing("the runs kept the clients of one round only", _runs.KEEP_CLIENTS)
    return _stack.name_runs(surface_distances(planes).assign_attrs(split=split), list(selected))


def draw(ds: xr.Dataset) -> Figure:
    """A matrix per distance."""
    figure, axs = style.panels(1, 2, height=3.4, cell=0.85)
    for ax, variable in zip(axs.flat, ("wasserstein", "aligned"), strict=True):
        matrix(ds[variable], ax=ax)
        ax.tick_params(axis="x", rotation=90)
        style.name_axes(ax, "method, round", "")
        ax.set_title(_farthest(ds[variable]), fontsize=style.small())
    return figure


def _farthest(values: xr.DataArray) -> str:
    """The method that lies farthest from the others, by its mean distance to them, and the next one."""
    names = [str(mark).rpartition(" ")[0] for mark in values[str(values.dims[0])].values]
    table = values.copy(data=np.where(np.equal.outer(names, names), np.nan, values.values))
    means = {name: float(table[[name == other for other in names]].mean()) for name in names}
    if len(means) < 3 or not np.isfinite(list(means.values())).all():
        return ""
    first, second, *_ = sorted(means, key=lambda name: -means[name])
    return f"mean distance to other methods:\n{first} {means[first]:.2g}, all others {means[second]:.2g} nats at most"
