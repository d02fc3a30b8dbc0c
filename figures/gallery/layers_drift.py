"""Client drift, update change, gain and coherence of every layer over rounds (FedEve, equation 13, by layer)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from drift.analyses.rounds.variance import layer_drift
from drift.runs.run import Run
from figures.axes import matrices
from figures.gallery import _runs, _selected
from figures.looks import style

NEEDS = "one run of any method that kept the clients of some rounds, better of successive ones"

COST = "seconds"

_SHOWN = {
    "client_variance": r"client drift $\sigma_R^2$",
    "change_variance": r"update change $\sigma_Q^2$",
    "gain": "Kalman gain G",
    "mean_cosine": "mean cosine of clients",
}

_NOTE: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": style.small()}


@_selected.one_run
def data(run: Run, *, rounds: Sequence[int] | None = None, momentum: str = "previous") -> xr.Dataset:
    """client_variance, change_variance, gain and mean_cosine over round and layer.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        rounds: The rounds shown; by default at most 20 that kept their clients, evenly spaced.
        momentum: What a round's update is compared with, as in `drift.layer_drift`.
    """
    _runs.rounds_with_clients(run, least=3)
    shown = {} if rounds is None else {"rounds": list(rounds)}
    return run.cached(layer_drift, **shown, momentum=momentum)[list(_SHOWN)]


def draw(ds: xr.Dataset) -> Figure:
    """Four maps over rounds and layers, the input on top; both variances have one logarithmic scale."""
    height = min(7.0, 1.5 + 0.17 * ds.sizes["layer"])
    figure, axs = style.panels(
        1, 4, height=max(2.4, height), stacked=2, cell=max(0.9, 0.14 * ds.sizes["layer"]), sharey=True
    )
    variances = np.concatenate([ds[name].values.ravel() for name in ("client_variance", "change_variance")])
    positive = variances[np.isfinite(variances) & (variances > 0)]
    looks = {
        "gain": {"vmin": 0, "vmax": 1, "cmap": style.sequential()},
        "mean_cosine": {"vmin": -1, "vmax": 1, "cmap": style.SIGNED},
    }
    shared = {"norm": LogNorm(positive.min(), positive.max()), "cmap": style.sequential()} if len(positive) else {}
    ticks = _evenly(ds["round"].values)
    for ax, (name, label) in zip(axs.flat, _SHOWN.items(), strict=True):
        values = ds[name].transpose("layer", "round")
        image = ax.pcolormesh(np.ma.masked_invalid(values.values), **looks.get(name, shared))
        if name == "mean_cosine" and matrices.minus(ax, values.values < 0, 0.5):
            label += " (dash: below 0)"
        figure.colorbar(image, ax=ax, location="top", label=label, aspect=12, pad=0.02)
        ax.set_facecolor("#e4e4e4")
        if why := _why_grey(ds, name):
            note = ax.text(0.5, 0.5, "grey: " + "\nor ".join(why), transform=ax.transAxes, **_NOTE)
            note.set_path_effects(style.outline())
        ax.grid(False)
        ax.set_xticks(ticks + 0.5, ds["round"].values[ticks])
        ax.set_xlabel("round")
    axs[0, 0].set_yticks(np.arange(ds.sizes["layer"]) + 0.5, [str(name) for name in ds.layer.values])
    axs[0, 0].invert_yaxis()
    return figure


def _why_grey(ds: xr.Dataset, name: str) -> list[str]:
    """Why some cells of a map have no colour: no number, or one that a logarithmic scale has no place for."""
    missing, lost = ds[name].isnull(), ds.client_variance.isnull()
    reasons = {
        "no client's model": missing & lost,
        "one client" if name == "mean_cosine" else "clients of the round\nbefore not kept": missing & ~lost,
        "0": ds[name] <= 0 if name.endswith("variance") else missing & ~missing,
    }
    return [reason for reason, cells in reasons.items() if bool(cells.any())]


def _evenly(rounds: np.ndarray) -> np.ndarray:
    """Places of rounds with labels: at even steps where the rounds are; else the first, the middle and the last."""
    if len(rounds) < 3 or np.ptp(np.diff(rounds)) > 0:
        return np.unique([0, len(rounds) // 2, len(rounds) - 1])
    step = -(-(len(rounds) - 1) // 4)
    nice = next(size for power in range(6) for size in (10**power, 2 * 10**power, 5 * 10**power) if size >= step)
    return np.arange(0, len(rounds), nice)
