"""Weight norm, largest Hessian eigenvalue and its ratio to the k-th, over rounds (FedLAW paper, Fig. 10)."""

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses import per_round
from drift.analyses.curvature import eigenvalues
from drift.analyses.rounds.norms_and_weights import update_norms
from drift.runs.run import Run
from figures.axes import curves, spectra
from figures.gallery import _selected
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting, that kept the global models of some rounds"

COST = "seconds per run"


@_selected.each_run("split")
def data(run: Run, *, rounds: int = 4, k: int = 5, split: str = "test", tolerance: float = 1e-2) -> xr.Dataset:
    """eigenvalue and converged over algorithm, seed, eigen_round and rank; ratio; end_norm over round.

    Args:
        rounds: How many rounds are evaluated, evenly spaced among those that kept their global model.
        k: Eigenvalues per round; the ratio is that of the first to the k-th.
        split: Samples of the Hessian.
        tolerance: Relative error of the eigenvalues.
    """
    indices = per_round.evenly_spaced(run.kept("globals"), rounds)
    curvature = run.cached(eigenvalues.eigen_rounds, rounds=indices, k=k, split=split, tolerance=tolerance)
    norms = run.cached(update_norms)[["end_norm"]]
    return (
        curvature[["eigenvalue", "ratio"]]
        .assign(converged=curvature.converged * 1.0)
        .rename(round="eigen_round")
        .merge(norms)
    )


def draw(ds: xr.Dataset) -> Figure:
    """Weight norm, largest eigenvalue, ratio."""
    figure, axs = style.panels(1, 3)
    curves.curve(ds, ax=axs[0, 0], variable="end_norm", label=r"weight norm $\|w\|$")
    label = rf"$\lambda_1$ of the {ds.attrs['split']} loss"
    spectra.eigenvalues(ds, ax=axs[0, 1], over="eigen_round", label=label)
    spectra.remark_unconverged(ds)
    label = rf"$\lambda_1\,/\,\lambda_{{{int(ds['rank'].max())}}}$"
    curves.curve(ds, ax=axs[0, 2], variable="ratio", over="eigen_round", label=label, **curves.DOTS)
    return style.key(figure, axs.flat, title=curves.band(ds))
