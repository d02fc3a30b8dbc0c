"""Loss and error from the last aggregate (FMA) to the mean of the last few (IMA) (IMA paper, Figs. 5c and 7c)."""

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.landscapes import planes
from drift.runs.run import Run
from figures.axes import curves, surfaces
from figures.gallery import _runs, _selected, _stack
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting, that kept the global models of their last rounds"

COST = "seconds per run"


@_selected.each_run("window")
def data(run: Run, *, window: int = 5, points: int = 41) -> xr.Dataset:
    """loss (nats) and error (fraction) over algorithm, seed and t.

    Args:
        window: Aggregates in the mean.
        points: Evaluations on a line.
    """
    if len(run.kept("globals")) < 2:
        raise _runs.missing(f"run {run.name} kept fewer than two global models", _runs.KEEP_GLOBALS)
    line = run.cached(planes.average_line, window=window, points=points)
    return line[_stack.measured(line)]


def draw(ds: xr.Dataset) -> Figure:
    """Loss and error; dots are minima."""
    variables = _stack.measured(ds)
    figure, axs = style.panels(1, len(variables), height=2.6)
    for ax, variable in zip(axs.flat, variables, strict=True):
        surfaces.profile(ds, ax=ax, variable=variable)
        surfaces.ends(ax, "last model", f"mean of last {ds.attrs['window']}")
    return style.key(figure, axs.flat, title=curves.band(ds))
