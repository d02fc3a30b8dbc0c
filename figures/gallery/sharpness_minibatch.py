"""Largest Hessian eigenvalue of minibatches, their median and that of all data (LSS paper, Table 7)."""

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses import per_round
from drift.analyses.curvature import eigenvalues
from drift.runs.run import Run
from figures.axes import curves, spectra
from figures.gallery import _selected
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting, that kept the global models of some rounds"

COST = "a minute per run"


@_selected.each_run("split", "batch")
def data(run: Run, *, rounds: int = 4, batch: int = 64, batches: int | None = 20, split: str = "train") -> xr.Dataset:
    """eigenvalue and converged over algorithm, seed, eigen_round and batch; median and full without batch.

    Args:
        rounds: How many rounds are evaluated, evenly spaced among those that kept their global model.
        batch, batches: Samples per batch, and how many batches are evaluated; None for all.
        split: Samples of the Hessian.
    """
    indices = per_round.evenly_spaced(run.kept("globals"), rounds)
    sharpness = run.cached(eigenvalues.sharpness_rounds, rounds=indices, batch=batch, batches=batches, split=split)
    shown = sharpness[["eigenvalue", "median", "full"]].assign(converged=sharpness.converged * 1.0)
    return shown.rename(round="eigen_round")


def draw(ds: xr.Dataset) -> Figure:
    """Median over batches, all data, and the batches of the last round."""
    figure, axs = style.panels(1, 3)
    labels = {
        "median": rf"median $\lambda_1$ of batches of {ds.attrs['batch']}",
        "full": rf"$\lambda_1$ of the {ds.attrs['split']} loss",
    }
    log = bool((ds[[*labels]].fillna(1) > 0).to_array().all())
    spectra.remark_unconverged(ds)
    curves.row(ds, axs[0], labels, over="eigen_round", log=log, **curves.DOTS)
    spectra.batches(ds.isel(eigen_round=-1), ax=axs[0, 2])
    if log:
        style.logarithmic(axs[0, 2])
    return style.key(figure, axs.flat, title=curves.band(ds))
