"""Largest Hessian eigenvalue of each layer's own block, early and late (per layer, after FedLAW paper, Fig. 10)."""

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses import per_round
from drift.analyses.curvature.eigenvalues import layer_rounds
from drift.runs.run import Run
from figures.axes import curves, spectra
from figures.gallery import _selected
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting, that kept the global models of some rounds"

COST = "seconds per run"


@_selected.each_run("split", "curvature")
def data(
    run: Run, *, rounds: int = 2, split: str = "test", curvature: str = "hessian", tolerance: float = 1e-2
) -> xr.Dataset:
    """eigenvalue and converged over algorithm, seed, layer_round and layer; size (parameters) over layer.

    Args:
        rounds: How many rounds are evaluated, evenly spaced among those that kept their global model.
        split: Samples of the Hessian.
        curvature: "hessian" or "gauss_newton".
        tolerance: Of the eigenvalues.
    """
    indices = per_round.evenly_spaced(run.kept("globals"), rounds)
    blocks = run.cached(layer_rounds, rounds=indices, split=split, curvature=curvature, tolerance=tolerance)
    return blocks[["eigenvalue"]].assign(converged=blocks.converged * 1.0).rename(round="layer_round")


def draw(ds: xr.Dataset) -> Figure:
    """A panel per round, a dot per method and layer, from the input to the output."""
    rounds = ds.layer_round.values.tolist()
    figure, (row,) = style.panels(1, len(rounds), height=2.9, sharey=True)
    for ax, index in zip(row, rounds, strict=True):
        spectra.layers(ds.sel(layer_round=index), ax=ax)
        ax.set_title(f"round {index}")
    kind = {"hessian": "Hessian", "gauss_newton": "Gauss-Newton"}[ds.attrs["curvature"]]
    for ax in row:
        ax.set_ylabel(f"largest eigenvalue of the layer's\n{kind} block, {ds.attrs['split']} loss")
    return style.key(figure, row, title=curves.band(ds))
