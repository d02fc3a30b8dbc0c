"""Spectral density of the Hessian of each method's global model over rounds (PyHessian paper, Fig. 1)."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses import per_round
from drift.analyses.curvature import eigenvalues
from drift.runs.run import Run
from figures import style
from figures.axes import spectra
from figures.gallery import _runs, _stack

NEEDS = "runs of any methods, trained in one setting, that kept the global models of some rounds"

COST = "seconds per run"


def data(
    runs: Sequence[Run], *, rounds: int = 2, steps: int = 30, probes: int = 2, points: int = 501, split: str = "test"
) -> xr.Dataset:
    """density and eigenvalue over algorithm, seed, density_round and mark, the positions on each grid.

    Args:
        rounds: How many rounds are evaluated, evenly spaced among those that kept their global model.
        steps, probes, points: As in `landscape.density`.
        split: Samples of the Hessian.
    """

    def compute(run: Run) -> xr.Dataset:
        indices = per_round.evenly_spaced(run.kept("globals"), rounds)
        options = {"steps": steps, "probes": probes, "points": points}
        density = run.cached(eigenvalues.density_rounds, rounds=indices, split=split, **options)
        return density[["density", "eigenvalue"]].rename(round="density_round")

    return _stack.stack_runs(_runs.select_comparable(runs), compute).assign_attrs(split=split)


def draw(ds: xr.Dataset) -> Figure:
    """A panel per round, a line per method; the first seed."""
    rounds = ds.density_round.values.tolist()
    figure, axs = style.panels(1, len(rounds), height=2.7, sharey=True)
    for ax, index in zip(axs[0], rounds, strict=True):
        spectra.density(ds.sel(density_round=index).isel(seed=0), ax=ax)
        ax.set_title(f"round {index}")
        ax.set_xlabel(f"eigenvalue of the Hessian of the {ds.attrs['split']} loss")
    style.key(figure, axs.flat)
    return figure
