"""Signal, data, drift and noise in clients' updates, and the cohort and local steps at which each is largest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.analyses.counterfactual.noise_or_drift import noise_or_drift
from drift.analyses.counterfactual.noise_terms import coefficients
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _runs, _selected
from figures.looks import style

NEEDS = "a run of a method with plain local SGD that kept its globals"

COST = "a minute per run"

_LOOKS = {
    "signal": ("signal", "#333333", "o"),
    "data": ("difference of data", "#0072B2", "s"),
    "sampling": ("sampling of clients", "#D55E00", "D"),
    "drift": ("drift of local steps", "#009E73", "^"),
    "noise": ("minibatch noise", "#E69F00", "v"),
}

_STYLES = dict(zip(_LOOKS, ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)), ":"), strict=True))


@_selected.one_run
def data(
    run: Run, *, rounds: int | Sequence[int] = 5, clients: str = "cohort", replays: int = 3, workers: int = 1
) -> xr.Dataset:
    """share over round, fraction and part, mean_square over cause, cohort_size and local_steps over pair, with bounds.

    Args:
        rounds: The rounds that are trained again, or how many, evenly spread over those that kept their globals.
        clients: "cohort", as a sample of all, or "all".
        replays: Trainings of each client.
        workers: Processes that share the trainings.
    """
    indices = _runs.rounds_among(run.kept("globals"), rounds) or None
    return run.cached(noise_or_drift, rounds=indices, clients=clients, replays=replays, workers=workers)


def draw(ds: xr.Dataset) -> Figure:
    """Shares with 95 % intervals over rounds; the mean update's parts by cohort size and by local steps, last round."""
    figure, axs = style.panels(1, 3, height=2.6)
    for values in (ds.share, ds.cohort):
        curves.require_values(values.where(values != 0))
    last, number = ds.isel(round=-1), int(ds.attrs["number"])
    for name in ds.part.values:
        share = ds.isel(fraction=-1).sel(part=name)
        _line(axs[0, 0], ds["round"].values, 100 * share.share, name)
        bounds = (100 * share.share_low, 100 * share.share_high)
        axs[0, 0].fill_between(ds["round"].values, *bounds, color=_LOOKS[name][1], alpha=0.15, linewidth=0)
    cohorts = np.unique(np.geomspace(1, number, 25).round())
    sizes = np.array([coefficients(cohort, number) for cohort in cohorts])
    factors = coefficients(float(last.cohort), number)
    for row, cause in enumerate(ds.cause.values):
        square = last.mean_square.sel(cause=cause)
        _line(axs[0, 1], cohorts, _positive(float(square[-1]) * sizes[:, row]), cause, marker="")
        _line(axs[0, 2], last.steps.values, _positive(square.values * factors[row]), cause)
    names = ("round", "cohort size m", "local steps")
    texts = ("share of the update [%]", "squares in the mean update", f"the same for m = {int(last.cohort)}")
    for ax, name, text in zip(axs.flat, names, texts, strict=True):
        style.name_axes(ax, name, text, integers=5 if name == "round" else None)
    for ax in axs[0, 1:]:
        ax.set(yscale="log")
    crossings = [
        _crossing(last, "m", "cohort_size", pair, f"1 to {number}") for pair in ("drift=sampling", "drift=noise")
    ]
    return style.key(figure, axs.flat, title="; ".join(crossings), columns=5)


def _line(
    ax: Axes, places: np.ndarray, values: np.ndarray | xr.DataArray, name: str, marker: str | None = None
) -> None:
    label, colour, usual = _LOOKS[name]
    ax.plot(
        places,
        values,
        color=colour,
        label=label,
        linestyle=_STYLES[name],
        marker=usual if marker is None else marker,
        markersize=2.8,
    )


def _positive(values: np.ndarray) -> np.ndarray:
    """Values for a logarithmic axis; estimates below zero are left out."""
    return np.where(values > 0, values, np.nan)


def _crossing(last: xr.Dataset, letter: str, name: str, pair: str, span: str) -> str:
    """Where two parts are equal, with its interval."""
    where, low, high = (float(last.isel(fraction=-1)[f"{name}{end}"].sel(pair=pair)) for end in ("", "_low", "_high"))
    text = pair.replace("=", " = ")
    if np.isnan(where):
        return f"{text}: not within {letter} = {span}"
    return f"{text} at {letter} = {where:.3g} [{low:.3g}, {high:.3g}]"
