"""Test accuracy over rounds with client drift, period drift, both or neither (FedEve paper, Fig. 3b)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift import named
from drift.run import Run
from figures import curves, style
from figures.gallery import _stack

NEEDS = "runs of one method with the partition drift, in two settings or more"

_SETTINGS = {
    "iid": ("neither (iid)", "#555555"),
    "client": ("client drift only", "#0072B2"),
    "period": ("period drift only", "#E69F00"),
    "both": ("both", "#D55E00"),
}


def data(runs: Sequence[Run]) -> xr.Dataset:
    """accuracy (fraction) over concentration, setting, seed and round.

    Runs of the setting iid do not depend on the concentration and stand for every one.
    """
    chosen = _chosen(runs)
    levels = sorted({_concentration(run) for run in chosen if _setting(run) != "iid"}, reverse=True)
    seeds, rounds = sorted({run.experiment.seed for run in chosen}), max(len(run.rounds()) for run in chosen)
    table = np.full((len(levels), len(_SETTINGS), len(seeds), rounds), np.nan)
    for run in sorted(chosen, key=_concentration):
        places = range(len(levels)) if _setting(run) == "iid" else [levels.index(_concentration(run))]
        values = run.metrics().accuracy.values
        for place in places:
            table[place, list(_SETTINGS).index(_setting(run)), seeds.index(run.experiment.seed), : len(values)] = values
    about = {"long_name": "test accuracy", "units": "fraction"}
    found = xr.Dataset(
        {"accuracy": (("concentration", "setting", "seed", "round"), table, about)},
        coords={"concentration": levels, "setting": list(_SETTINGS), "seed": seeds, "round": range(rounds)},
    )
    return _stack.described(found, chosen).assign_attrs(method=chosen[0].label)


@style.styled
def draw(ds: xr.Dataset) -> Figure:
    """One panel a concentration, one line a setting."""
    columns = ds.sizes["concentration"]
    figure, axs = style.panels(1, columns, width=style.NARROW if columns == 1 else style.WIDE, height=2.6, sharey=True)
    for ax, level in zip(axs.flat, ds.concentration.values, strict=True):
        for setting, (label, colour) in _SETTINGS.items():
            values = ds.accuracy.sel(concentration=level, setting=setting)
            curves.banded(values, ax=ax, over="round", color=colour, label=label, linewidth=1.1)
        ax.set_title(f"{style.label(ds.attrs['method'])}, Dir({level:g})", fontsize=7)
        ax.set_xlabel("round")
    axs[0, 0].set_ylabel("test accuracy")
    style.key(figure, axs.flat, title=curves.band(ds), columns=2 if columns == 1 else 4)
    return figure


def _chosen(runs: Sequence[Run]) -> list[Run]:
    """Runs that differ in setting, concentration and seed only: those of the method and task with most settings.

    Raises:
        LookupError: If there are fewer than two settings, or only iid ones.
    """
    groups: dict[str, list[Run]] = {}
    for run in runs:
        spec = run.experiment
        if named.name(spec.clients.partition) == "drift":
            same = spec.model_copy(update={"seed": 0, "clients": None}), spec.clients.number, spec.clients.per_round
            groups.setdefault(f"{run.label} {same!r}", []).append(run)
    chosen = max(groups.values(), key=lambda group: (len({_setting(run) for run in group}), len(group)), default=[])
    settings = {_setting(run) for run in chosen}
    if len(settings) < 2:
        command = "fedscape train drift-settings --set clients.setting=iid, and again with period, client and both"
        raise LookupError(_stack.absent(f"{len(runs)} runs have {len(settings)} of the four drift settings", command))
    return chosen


def _setting(run: Run) -> str:
    return str(getattr(run.experiment.clients.partition, "setting", ""))


def _concentration(run: Run) -> float:
    return float(getattr(run.experiment.clients.partition, "concentration", np.nan))
