"""Spectral density of the Hessian of each method's global model over rounds (PyHessian paper, Fig. 1)."""

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses import per_round
from drift.analyses.curvature import densities
from drift.runs.run import Run
from figures.axes import spectra
from figures.gallery import _selected
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting, that kept the global models of some rounds"

COST = "seconds per run"


@_selected.each_run("split", select=_selected.of_first_seed)
def data(
    run: Run, *, rounds: int = 2, steps: int = 30, probes: int = 2, points: int = 501, split: str = "test"
) -> xr.Dataset:
    """density, bulk (also _error) and eigenvalue over algorithm, seed, density_round and mark, the positions on a grid.

    Also outlier and outlier_density over outlier_rank, the eigenvalues outside the bulk.

    Args:
        rounds: How many rounds are evaluated, evenly spaced among those that kept their global model.
        steps, probes, points: As in `landscape.density`.
        split: Samples of the Hessian.
    """
    indices = per_round.evenly_spaced(run.kept("globals"), rounds)
    options = {"steps": steps, "probes": probes, "points": points}
    density = run.cached(densities.density_rounds, rounds=indices, split=split, **options)
    shown = [name for name, values in density.items() if values.ndim > 1]  # and no moments
    return density[shown].rename(round="density_round")


def draw(ds: xr.Dataset) -> Figure:
    """A row per method, a column per round with its own range of eigenvalues."""
    rounds, names = ds.density_round.values.tolist(), style.order(map(str, ds.algorithm.values))
    tall = 0.62 if len(names) > 1 else 2.0
    figure, axs = style.panels(
        len(names),
        len(rounds),
        height=tall * len(names) + 0.9,
        stacked=len(rounds),
        cell=0.75 * tall / style.NARROW * len(rounds),
        sharey=True,
    )
    for row, name in zip(axs, names, strict=True):
        for ax, index in zip(row, rounds, strict=True):
            spectrum = ds.sel(density_round=index, algorithm=[name]).isel(seed=0)
            named = spectra.density(spectrum, ax=ax, filled=True).get_ylabel()
            ax.tick_params(labelbottom=style.is_lowest(ax))
            ax.set_title(f"round {index}" if ax in axs[0] else "")
            ax.set_ylabel(style.label(name) if style.is_first(ax) else "", rotation=0, ha="right", va="center")
            ax.set_xlabel(f"eigenvalue of the Hessian of the {ds.attrs['split']} loss" if style.is_lowest(ax) else "")
    for index, column in zip(rounds, axs.T, strict=True):
        spectra.same_window(ds.sel(density_round=index), column, float(ds.density.max()))
    figure.supylabel(named, fontsize=style.small())
    return figure
