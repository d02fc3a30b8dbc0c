"""What window means, shrinking and other weights would have gained (IMA paper, equation 5; FedLAW paper, section 4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses import per_round
from drift.analyses.counterfactual.whatif import what_if
from drift.runs.run import Run
from figures.axes import curves, legends
from figures.gallery import _runs, _selected
from figures.looks import palette, style

NEEDS = "a run that kept the clients of some rounds; runs of the same method with other seeds are averaged"

COST = "a minute per run"

_COLOURS = {"fma": "#555555", "uniform": "#0E8FCC", "gamma": "#882255", "weights": "#009E73"}
_LABELS = {"fma": "data-size weights", "uniform": "equal weights", "gamma": r"best $\gamma$", "weights": "best weights"}
_MARKERS = "osD^vPX"
_WINDOWS = ("#DF7D2E", "#A84A00", "#521F00", "#C08400", "#6B6B1F")


@_selected.each_run(select=_selected.of_method)
def data(run: Run, *, rounds: int = 15, windows: Sequence[int] = (3, 5, 9)) -> xr.Dataset:
    """gain (nats) and error_gain (fraction) over algorithm, seed, round and variant; gamma over round.

    Args:
        method: Whose runs are shown; by default those of FedAvg, or of the first method.
        rounds: How many rounds are evaluated, evenly spaced among those that kept their globals.
        windows: Numbers of aggregates in the window means.
    """
    _runs.rounds_with_clients(run)
    indices = per_round.evenly_spaced(run.kept("globals"), rounds)
    rules = run.cached(what_if, rounds=indices, windows=list(windows))[["gain", "error_gain", "gamma"]]
    return rules.assign_attrs(split="test", samples=rules.attrs["reported_on"])


def draw(ds: xr.Dataset) -> Figure:
    """Gains in loss, and in error where the data have one, of every variant that differs; and the chosen gamma."""
    shown = ds.isel(algorithm=0)
    names = [str(name) for name in ds.variant.values]
    gains = {"gain": 1, "error_gain": 100}
    gains = {name: factor for name, factor in gains.items() if shown[name].sel(variant=names[1:]).notnull().any()}
    ratios = (*[1.25] * len(gains), 1)
    figure, axs = style.panels(1, len(gains) + 1, height=2.6, cell=0.2, sharex=True, width_ratios=ratios)
    windows = [name for name in names if name.startswith("ima-")]
    for name in names[1:]:
        colour = _WINDOWS[windows.index(name) % len(_WINDOWS)] if name in windows else _COLOURS[name]
        label = f"mean of {name[4:]} rounds" if name in windows else _LABELS[name]
        look = {**curves.DOTS, "color": colour, "label": label, "marker": _MARKERS[names.index(name) % len(_MARKERS)]}
        look["linestyle"] = palette.DASHES[(names.index(name) - 1) % len(palette.DASHES)]  # lines often hide each other
        if name == "gamma":
            curves.line_with_band(curves.mean(shown.gamma, "seed"), ax=axs[0, -1], over="round", **look)
        if not bool((np.abs(shown.gain.sel(variant=name)) > 1e-5).any()):
            continue  # the recorded model itself
        for ax, (gain, factor) in zip(axs[0], gains.items(), strict=False):
            means = curves.mean(factor * shown[gain].sel(variant=name), "seed")  # so many bands would hide each other
            curves.line_with_band(means, ax=ax, over="round", **look)
    texts = {"gain": style.with_unit("loss gained", ds.gain), "error_gain": "accuracy gained [points]"}
    for ax, text in zip(axs.flat, [*map(texts.__getitem__, gains), r"best $\gamma$"], strict=True):
        style.name_axes(ax, "round", text, integers=5)
    for ax in axs[0, :-1]:
        curves.mark_level(ax)
    title, seeds = style.label(str(ds.algorithm.values[0])), ds.sizes["seed"]
    title = title if seeds == 1 else f"{title}, mean of {seeds} seeds"
    if number := ds.attrs.get("samples"):
        title = f"{title}, on the {number} test samples that chose no weights"
    return legends.side_legends(figure, axs, title=title, columns=4)
