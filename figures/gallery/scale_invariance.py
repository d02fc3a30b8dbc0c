"""Loss and error of each method's final model times gamma (FedLAW paper, Fig. 4 left)."""

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.landscapes import model_quality
from drift.runs.run import Run
from figures.axes import curves, surfaces
from figures.gallery import _selected, _stack
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting, that kept their last global model"

COST = "seconds per run"


@_selected.each_run("split")
def data(run: Run, *, low: float = 0.5, high: float = 1.2, points: int = 36, split: str = "test") -> xr.Dataset:
    """loss (nats) and error (fraction) over algorithm, seed and t, which is gamma.

    Args:
        low, high: Range of gamma.
        points: Evaluations on a curve.
        split: Samples of loss and error.
    """
    curve = run.cached(model_quality.scale_curve, low=low, high=high, points=points, split=split)
    return curve[_stack.measured(curve)]


def draw(ds: xr.Dataset) -> Figure:
    """Loss and error; dots are minima, the dotted line is the model as trained."""
    variables = _stack.measured(ds)
    figure, axs = style.panels(1, len(variables), height=2.6)
    for ax, variable in zip(axs.flat, variables, strict=True):
        surfaces.profile(ds, ax=ax, variable=variable)
        ax.axvline(1, color=style.GLOBAL, linewidth=0.6, linestyle=":", zorder=1)
        style.name_axes(ax, r"factor $\gamma$ of all parameters", f"{ds.attrs['split']} {style.text(ds[variable])}")
    return style.key(figure, axs.flat, title=curves.band(ds))
