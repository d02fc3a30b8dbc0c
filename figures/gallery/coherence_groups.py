"""Coherence of updates within and between balanced and imbalanced clients over rounds (FedLAW paper, Figs. 5, 6)."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.coherence import coherence
from drift.runs.run import Run
from figures.axes import curves, drifts
from figures.gallery import _runs, _stack
from figures.looks import style
from figures.selection import run_selection

NEEDS = (
    "runs of FedAvg and FedLAW (GWS), or of any methods, trained in one setting with label skew, two clients per round"
)

COST = "seconds"


def data(runs: Sequence[Run], *, methods: Sequence[str] | None = None, smooth: int = 3) -> xr.Dataset:
    """group_cosine and its moving average over algorithm, seed, round and pair; evenness and balanced over client.

    Args:
        methods: Which two are shown; by default FedAvg and FedLAW (GWS), or the two first in legends.
        smooth: Rounds in the moving average.
    """
    selected = _runs.prefer_methods(
        _runs.select_comparable(run_selection.select_runs(runs, methods)), methods, ("fedavg", "fedlaw-gws")
    )
    two = style.order(run.label for run in selected)[:2]
    why = "this figure shows two methods; choose them by the option methods"
    selected = run_selection.narrow(selected, [run for run in selected if run.label in two], why)
    columns = ["group_cosine", "group_cosine_smooth", "evenness", "balanced"]
    ds = _stack.stack_runs(selected, lambda run: run.cached(coherence, smooth=smooth, groups="balance")[columns])
    if not np.isfinite(ds.group_cosine.values).any():
        command = "fedscape train digits-shards2 --set clients.per_round=5"
        raise _runs.missing(f"no round of {selected[0].name} has two clients of one group", command)
    _require_groups(ds)
    return ds


TIED = 0.02
"""Difference in evenness within which two clients count as equal."""


def _require_groups(ds: xr.Dataset) -> None:
    """Refuse groups without a difference: where most clients are as even as the median client.

    Raises:
        LookupError: If half of the clients or more are so, with every seed; names a partition that does.
    """
    even = ds.evenness.max([dim for dim in ("algorithm",) if dim in ds.evenness.dims])
    tied = (abs(even - even.median("client")) < TIED).sum("client") / even.count("client")
    if bool((tied >= 0.5).all()):
        share, middle = float(tied.min()), float(even.median("client").mean())
        command = "fedscape train digits-shards2 --set clients.partition='{name=\"dirichlet\", concentration=0.3}'"
        few = (
            f"{share:.0%} of the clients hold the classes as evenly as each other ({middle:.2f}): no groups to compare"
        )
        raise _runs.missing(few, command)


def draw(ds: xr.Dataset) -> Figure:
    """A panel per method on one scale; how evenly the clients of one seed hold the classes."""
    pair = curves.split_algorithms(ds.group_cosine)[:2]
    figure, axs = style.panels(1, len(pair) + 1, height=2.5)
    for ax, (name, _) in zip(axs[0], pair, strict=False):
        drifts.group_cosines(ds.sel(algorithm=name), ax=ax)
        ax.set_title(style.label(str(name)), fontsize=style.small())
        ax.set_ylabel(ax.get_ylabel() if style.is_first(ax) else "")
    style.same_range(*axs[0, :-1])
    seed = ds.seed.values[0]
    drifts.evenness(ds[["evenness", "balanced"]].sel(seed=seed).max("algorithm"), ax=axs[0, -1])
    axs[0, -1].legend(loc="lower right")
    axs[0, -1].set_title(f"seed {seed}" if ds.sizes["seed"] > 1 else "", fontsize=style.small())
    return style.key(figure, axs[0, :-1], title=curves.band(ds))
