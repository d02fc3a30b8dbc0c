"""Loss along the top Hessian eigenvector of each method's final model (FedLAW paper, Fig. 4 right)."""

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.curvature import eigenvalues
from drift.runs.run import Run
from figures.axes import curves, spectra
from figures.gallery import _selected, _stack
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting, that kept their last global model"

COST = "seconds per run"


@_selected.each_run("split")
def data(run: Run, *, radius: float = 0.5, points: int = 41, split: str = "test") -> xr.Dataset:
    """loss and error (fraction) over algorithm, seed and t; eigenvalue over algorithm and seed.

    Args:
        radius: The slice reaches this far on both sides (parameter-space length).
        points: Evaluations on a slice.
        split: Samples of the Hessian and the loss.
    """
    line = run.cached(eigenvalues.eigen_slice, radius=radius, points=points, split=split)
    return line[[*_stack.measured(line), "eigenvalue"]]


def draw(ds: xr.Dataset) -> Figure:
    """Loss as it is, and its height above the model."""
    figure, axs = style.panels(1, 2, height=2.7)
    spectra.sharpest_slice(ds, ax=axs[0, 0], log=True)
    spectra.sharpest_slice(ds, ax=axs[0, 1], above=True)
    axs[0, 0].set_ylabel(style.with_unit(f"{ds.attrs['split']} loss", ds.loss))
    axs[0, 1].set_ylabel(style.with_unit("loss above the model", ds.loss))
    return style.key(figure, axs.flat, title=curves.band(ds), columns=3)
