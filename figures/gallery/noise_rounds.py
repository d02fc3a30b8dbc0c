"""Signal, data, drift and noise in clients' updates, and the cohort and local steps at which each is largest."""

from collections.abc import Sequence
from typing import Any

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

_LOOKS: dict[str, tuple[str, str, str, Any]] = {
    "signal": ("signal", "#333333", "o", "-"),
    "data": ("difference of data", "#0072B2", "s", "--"),
    "sampling": ("sampling of clients", "#D55E00", "D", "-."),
    "drift": ("drift of local steps", "#009E73", "^", (0, (5, 1, 1, 1, 1, 1))),
    "noise": ("minibatch noise", "#C08400", "v", ":"),
}


@_selected.one_run
def data(
    run: Run,
    *,
    rounds: int | Sequence[int] = 5,
    clients: str | int = "cohort",
    replays: int = 3,
    fractions: Sequence[float] = (0.125, 0.25, 0.5, 1.0),
    workers: int = 1,
) -> xr.Dataset:
    """share over round, fraction and part, mean_square over cause, cohort_size and local_steps over pair, with bounds.

    Args:
        rounds: The rounds that are trained again, or how many, evenly spread over those that kept their globals.
        clients: "cohort", as a sample of all, a number of its clients, or "all".
        replays: Trainings of each client.
        fractions: Of the local steps, at which the last panel has its points; the last is 1.
        workers: Processes that share the trainings.
    """
    options = {"clients": clients, "replays": replays, "fractions": tuple(fractions), "workers": workers}
    ds = run.cached(noise_or_drift, rounds=_runs.rounds_among(run.kept("globals"), rounds) or None, **options)
    _runs.require_moves(ds.square, run.name)
    return ds


def draw(ds: xr.Dataset) -> Figure:
    """Shares over rounds; squares in the mean update by cohort size and by local steps, last round.

    Bands and upright bars are 95 % intervals.
    """
    figure, axs = style.panels(1, 3, height=2.6)
    for values in (ds.share, ds.cohort):
        curves.require_values(values.where(values != 0))
    last, number = ds.isel(round=-1), int(ds.attrs["number"])
    cohorts = np.unique(np.geomspace(1, number, 25).round())
    sizes = np.array([coefficients(cohort, number) for cohort in (*cohorts, float(last.cohort))]).T
    for name in ds.part.values:
        _line(axs[0, 0], ds["round"].values, 100 * _bounded(ds.isel(fraction=-1).sel(part=name), "share"), name)
    for cause, factors in zip(ds.cause.values, sizes, strict=True):
        square = _bounded(last.sel(cause=cause), "mean_square")
        _line(axs[0, 1], cohorts, square[:, -1:] * factors[:-1], cause, size=0, every=8)
        _line(axs[0, 2], last.steps.values, square * factors[-1], cause, every=1)
    names = ("round", "cohort size m", "local steps")
    texts = ("share of the update [%]", "squares in the mean update", f"the same for m = {int(last.cohort)}")
    for ax, name, text in zip(axs.flat, names, texts, strict=True):
        style.name_axes(ax, name, text, integers=5)
    # a power of ten, as ticks of another number run into that of 0
    threshold = 10.0 ** np.ceil(np.log10(max(1e-3 * float(last.mean_square.isel(fraction=-1).max()), 1e-30)))
    for ax in axs[0, 1:]:
        ax.set_yscale("symlog", linthresh=threshold)
    shares = 100 * last.share.isel(fraction=-1)
    most = int(np.argmax(shares.fillna(-np.inf).values))
    if bool(shares.notnull().any()):
        largest = f"largest: {_LOOKS[str(shares.part.values[most])][0]}, {float(shares[most]):.0f} %"
        axs[0, 0].set_title(f"{largest} in round {int(last['round'])}", fontsize=style.small())
    equal, noise = (_crossing(last, pair, f"1 to {number}") for pair in ("drift=sampling", "drift=noise"))
    axs[0, 1].set_title(equal, fontsize=style.small())
    title = f"{noise}; below {threshold:.0e} the scale is linear, as estimates can be negative"
    return style.key(figure, axs.flat, title=title, columns=5)


def _bounded(ds: xr.Dataset, name: str) -> np.ndarray:
    """A variable and both ends of its interval, in rows."""
    return np.array([ds[f"{name}{end}"].values for end in ("", "_low", "_high")])


def _line(ax: Axes, places: np.ndarray, bounded: np.ndarray, name: str, size: float = 2.8, every: int = 0) -> None:
    """A line with its interval as a band, or as a bar at every so many places, side by side with those of others."""
    label, colour, marker, line = _LOOKS[name]
    values, low, high = bounded
    ax.plot(places, values, color=colour, label=label, linestyle=line, marker=marker, markersize=size)
    if every:
        aside = 0.012 * float(np.ptp(places)) * (list(_LOOKS).index(name) - 2)
        ax.vlines(places[::every] + aside, low[::every], high[::every], color=colour, linewidth=0.7, alpha=0.6)
    else:
        ax.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)


def _crossing(last: xr.Dataset, pair: str, span: str) -> str:
    """Cohort size at which two parts are equal, with its interval."""
    where, low, high = _bounded(last.isel(fraction=-1).sel(pair=pair), "cohort_size")
    text = " equals ".join(_LOOKS[name][0] for name in pair.split("="))
    return f"{text} at m = {where:.3g} [{low:.3g}, {high:.3g}]" if where == where else f"{text}: not within m = {span}"
