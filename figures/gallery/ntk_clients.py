"""Tangent-kernel variance of each client's model against the distance of its data (IMA paper, theorem 2)."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.decomposition.ntk import ntk_variance
from drift.analyses.per_round import evenly_spaced
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _runs, _selected
from figures.looks import style

NEEDS = "a run that kept the global models of some rounds"

COST = "minutes per run"


@_selected.one_run
def data(run: Run, *, rounds: int = 3, points: int = 100, union: str = "all") -> xr.Dataset:
    """variance, expression, mmd2, diagonal and off_diagonal over round and client of the first run of a method.

    Args:
        rounds: How many rounds are evaluated, evenly spaced among those that kept their models.
        points: Most points of each client, and of all data.
        union: What clients are compared with: data of the "cohort" or of "all" clients.
    """
    stored = run.kept("globals")
    if not stored:
        raise _runs.missing(f"run {run.name} kept no global models", _runs.KEEP_GLOBALS)
    results = run.cached(ntk_variance, rounds=evenly_spaced(stored, rounds), points=points, union=union)
    shown = results[["variance", "expression", "mmd2", "diagonal", "off_diagonal"]]
    return shown.assign_attrs(label=run.label)


def draw(ds: xr.Dataset) -> Figure:
    """Variance against MMD, the expression of theorem 2 against the variance, and how far its assumption is broken."""
    figure, axs = style.panels(1, 3)
    share = {name: ds[name] / ds.diagonal for name in ("variance", "expression")}
    far = ds.mmd2.clip(min=0) ** 0.5 / ds.diagonal
    for index, (colour, number) in enumerate(zip(style.steps(ds.sizes["round"]), ds["round"].values, strict=True)):
        look = {"color": colour, "s": 14, "linewidths": 0, "label": f"round {number}"}
        at = {name: values.sel(round=number) for name, values in share.items()}
        axs[0, 0].scatter(far.sel(round=number), at["variance"], **look)
        axs[0, 1].scatter(at["variance"], at["expression"], **look)
        bound = ds.off_diagonal.sel(round=number).values
        bound = bound[np.isfinite(bound)]
        axs[0, 2].scatter(index + np.linspace(-0.25, 0.25, max(len(bound), 1))[: len(bound)], bound, **look)
    style.name_axes(axs[0, 0], r"MMD to all data / $\lambda$", r"posterior variance / $\lambda$")
    style.name_axes(axs[0, 1], r"posterior variance / $\lambda$", r"expression of theorem 2 / $\lambda$")
    low, high = axs[0, 0].get_ylim()
    axs[0, 1].plot(
        [max(low, 0), high], [max(low, 0), high], color="#777777", linewidth=0.8, linestyle="--", label="both equal"
    )
    style.name_axes(axs[0, 2], "round", r"largest $|K(x_i, x_j)|\,/\,\lambda$")
    axs[0, 2].set_xticks(range(ds.sizes["round"]), [str(number) for number in ds["round"].values])
    axs[0, 2].set_ylim(0, 1.08 * max(1.0, float(ds.off_diagonal.max())))
    curves.mark_level(axs[0, 2], 1)
    title = f"{style.label(ds.attrs['label'])}, one dot per client; $\\lambda$: mean kernel of a point with itself"
    return style.key(figure, axs[0, :2], title=title)
