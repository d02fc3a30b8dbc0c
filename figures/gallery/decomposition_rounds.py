"""Squared bias, variance and covariance of the averaged model's loss over rounds (IMA paper, theorem 1)."""

from collections.abc import Sequence
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.decomposition.decomposition import decomposition
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _runs, _stack
from figures.looks import style
from figures.selection.groups import grouped
from figures.selection.run_selection import line_names

NEEDS = "runs of any methods, trained in one setting, that kept the clients of some rounds; trains clients again"

COST = "a minute per run"

_SHOWN = {
    "bias2": "squared bias",
    "var": "variance",
    "cov": "covariance",
    "cov_bound": "lower bound of the covariance",
    "residual": "FMA minus WENS loss",
    "locality": r"locality $\max_k\|w_k-\bar w\|$",
}


def data(
    runs: Sequence[Run],
    *,
    rounds: int | Sequence[int] = 4,
    replicates: int = 3,
    samples_per_client: int = 50,
    estimator: str = "local",
    workers: int = 1,
) -> xr.Dataset:
    """bias2, var, cov, cov_bound, residual and locality over algorithm, seed and round.

    Args:
        rounds: The rounds that are evaluated, or how many, evenly spaced among those that kept clients.
        replicates: Models of each client for the estimator local.
        samples_per_client: Training samples of each client that everything is averaged over.
        estimator: "local" trains the clients of these rounds again; "runs" takes the given runs of a method with
            several seeds (and one partition) for repetitions of each other.
        workers: Processes that share the trainings.
    """
    selected = _runs.select_comparable(runs)
    names = line_names(selected)
    groups = grouped(selected, lambda run: names[run.folder])
    shown = [group[0] for group in groups.values()] if estimator == "runs" else selected

    def compute(run: Run) -> xr.Dataset:
        indices = _runs.rounds_among(_runs.rounds_with_clients(run), rounds)
        more: dict[str, object] = {"estimator": estimator, "replicates": replicates, "workers": workers}
        if estimator == "runs":
            more["others"] = [str(other.folder) for other in groups[names[run.folder]][1:]]
        return run.cached(decomposition, rounds=indices, samples_per_client=samples_per_client, **more)[list(_SHOWN)]

    ds = _stack.stack_runs(shown, compute)
    return _stack.name_runs(ds, selected).assign_attrs(estimator=estimator)


def draw(ds: xr.Dataset) -> Figure:
    """One panel per quantity; covariance with its lower bound (corollary 1), thin and without marks."""
    figure, axs = style.panels(1, 4, height=2.4)
    shown = ("bias2", "var", "cov", "residual")
    curves.row(ds, axs.flat, {name: _SHOWN[name] for name in shown}, **curves.DOTS)
    look: dict[str, Any] = {"variable": "cov_bound", "names": False, "linewidth": 0.7}
    bound = ds[["cov_bound"]].mean("seed", keep_attrs=True)
    curves.curve(bound, ax=axs[0, 2], label="covariance (thin: its bound)", level=0, **look)
    curves.mark_level(axs[0, 3])
    return style.key(figure, axs.flat, title=curves.band(ds))
