"""Test accuracy over rounds with client drift, period drift, both or neither (FedEve paper, Fig. 3b)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.plugins import tables
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _runs, _stack
from figures.looks import palette, style
from figures.selection.groups import largest_group
from figures.selection.run_selection import settings_key

NEEDS = "runs of one method with the partition drift, in two settings or more"

COST = "seconds"

_SETTINGS = {
    "iid": ("neither (iid)", "#000000", palette.DASHES[0]),
    "client": ("client drift only", "#0072B2", palette.DASHES[1]),
    "period": ("period drift only", "#C08400", palette.DASHES[2]),
    "both": ("both", "#8F3A00", palette.DASHES[3]),
}


def data(runs: Sequence[Run]) -> xr.Dataset:
    """accuracy (fraction) over epochs (local ones), concentration, setting, seed and round.

    Runs of the setting iid do not depend on the concentration and stand for every one.
    """
    selected = _drift_settings(runs)
    levels = sorted({_concentration(run) for run in selected if _setting(run) != "iid"}, reverse=True)
    epochs = sorted({run.experiment.local.epochs for run in selected})
    seeds, table = sorted({run.experiment.seed for run in selected}), {}
    for run in sorted(selected, key=_concentration):
        for level in levels if _setting(run) == "iid" else [_concentration(run)]:
            key = run.experiment.local.epochs, level, _setting(run), run.experiment.seed
            table[key] = run
    axes: Any = {"epochs": epochs, "concentration": levels, "setting": list(_SETTINGS), "seed": seeds}
    ds = _stack.fill_array(_stack.accuracies(table), axes, *_stack.ACCURACY, "round").to_dataset(name="accuracy")
    return _stack.name_runs(ds, selected).assign_attrs(method=selected[0].label)


def draw(ds: xr.Dataset) -> Figure:
    """A panel per concentration, a row per number of local epochs, one line per setting."""
    rows, columns = ds.sizes["epochs"], ds.sizes["concentration"]
    wide = style.NARROW if columns == 1 else style.WIDE
    figure, axs = style.panels(rows, columns, width=wide, height=2.2 * rows + 0.4, sharey=True, sharex=True)
    for cell, ax in np.ndenumerate(axs):
        panel = ds.accuracy.isel(epochs=cell[0], concentration=cell[1])
        measured = int(panel.notnull().any(("setting", "seed")).sum())
        gap = max(1, measured // 7)  # of bars, as bands would cover each other
        for eighth, (setting, (label, colour, line)) in zip((1, 3, 5, 7), _SETTINGS.items(), strict=True):
            look: Any = {"color": colour, "linestyle": line, "label": label, "linewidth": 1.1, "markersize": 3.5}
            look |= {"marker": palette.MARKERS[eighth // 2], "markevery": slice(eighth * gap // 8, None, gap)}
            curves.line_with_band(panel.sel(setting=setting), ax=ax, over="round", **look)
        epochs = f", {int(panel.epochs)} local epoch{'s' if panel.epochs > 1 else ''}" if rows > 1 else ""
        ax.set_title(
            f"{style.label(ds.attrs['method'])}, Dir({float(panel.concentration):g}){epochs}", fontsize=style.small()
        )
        ax.set(xlabel="round" if cell[0] == rows - 1 else "", ylabel="test accuracy" if style.is_first(ax) else "")
    return style.key(figure, axs.flat, title=curves.band(ds), columns=2 if columns == 1 else 4)


def _drift_settings(runs: Sequence[Run]) -> list[Run]:
    """Runs that differ in setting, concentration, local epochs and seed only: the method and task with most settings.

    Raises:
        LookupError: If there are fewer than two settings, or only iid ones.
    """

    def same(run: Run) -> str:
        clients = run.experiment.clients
        return f"{run.label} {settings_key(run, ('clients', 'local.epochs'))} {clients.number} {clients.per_round}"

    drifting = (run for run in runs if tables.name(run.experiment.clients.partition) == "drift")
    selected = largest_group(drifting, same, lambda group: (len({_setting(run) for run in group}), len(group)))
    settings = {_setting(run) for run in selected}
    if len(settings) < 2:
        command = "fedscape train drift-settings --set clients.setting=iid, and again with period, client and both"
        raise _runs.missing("these runs have fewer than two of the four drift settings", command)
    return selected


def _setting(run: Run) -> str:
    return str(getattr(run.experiment.clients.partition, "setting", ""))


def _concentration(run: Run) -> float:
    return float(getattr(run.experiment.clients.partition, "concentration", np.nan))
