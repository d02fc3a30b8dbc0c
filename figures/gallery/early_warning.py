"""Sequential tests on the first third of the rounds: statistics against their limits, alarms marked (this project)."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.early_warning import early_warning
from drift.record.early_warning import WORDS, Family
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _selected
from figures.looks import style
from figures.looks.look import current

NEEDS = "runs of any methods, trained in one setting"

COST = "seconds"

NEEDED = dict.fromkeys(("coherence", "rank"), "takes three rounds of two clients that moved")
NEEDED |= {
    "client": "takes three clients that moved",
    "rate": "takes a model that moved",
    "rise": "takes three test losses",
}
NEEDED |= {"variances": "takes batch normalisation in a recorded run", "stall": "takes three test losses in the third"}
"""What a detector takes, said where it has no numbers."""


@_selected.each_run()
def data(run: Run, *, detectors: Family = "all") -> xr.Dataset:
    """statistic over algorithm, seed, round and detector; limit and first_alarm by detector.

    Args:
        detectors: Those of the "drift", of the loss "curve", or "all".
    """
    return run.cached(early_warning, detectors=detectors)


def draw(ds: xr.Dataset) -> Figure:
    """A panel for each detector with a number: its statistic, its limit dashed, a ring at the first alarm."""
    values = {name: ds.statistic.sel(detector=name) for name in ds.detector.values}
    shown = [name for name, value in values.items() if bool(value.notnull().any())]
    if absent := [f"{WORDS[name]} ({NEEDED[name]})" for name in values if name not in shown]:
        reason = str(ds.attrs.get("caption", f"no numbers in the watched rounds: {', '.join(absent)}"))
        current().remark(reason)
    if not shown:
        raise LookupError(reason)
    if infinite := [WORDS[name] for name in shown if bool(np.isposinf(values[name]).any())]:
        current().remark(f"infinite, an alarm with its ring at the upper edge: {', '.join(infinite)}")
    figure, axs = style.panels(-(-len(shown) // 3), min(len(shown), 3))
    for ax in axs.flat[len(shown) :]:
        ax.remove()
    for ax, name in zip(axs.flat, shown, strict=False):
        panel = ds.sel(detector=name)
        if bool(np.isfinite(values[name]).any()):
            curves.curve(panel, ax=ax, variable="statistic", **curves.DOTS)
        style.name_axes(ax, "round", WORDS[name], integers=5)
        curves.mark_level(ax, float(panel.limit.max()))
        ax.set_xlim(-0.5, float(ds["round"].max()) + 0.5)
        ax.lines[-1].set(color="black", linestyle="--", label="limit")
        alarms = panel.first_alarm.stack(run=["algorithm", "seed"]).dropna("run")
        warned = ", ".join(map(style.label, dict.fromkeys(map(str, alarms.algorithm.values))))
        title = f"alarm: {warned}, round {int(alarms.min())}" if alarms.size else "no alarm"
        ax.set_title(title, fontsize=style.small(), weight="bold" if alarms.size else "normal")
        for alarm in alarms:
            height = float(panel.statistic.sel(algorithm=alarm.algorithm, seed=alarm.seed, round=alarm))
            ax.plot(alarm, np.minimum(height, ax.get_ylim()[1]), "o", mfc="none", mec="black", label="first alarm")
    return style.key(figure, axs.flat[: len(shown)], title=curves.band(ds))
