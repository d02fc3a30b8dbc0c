"""What unequal clients change in the mean update over rounds: steps, lateness, stops, parts, sending, noise."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.counterfactual.update_causes import update_causes
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _runs, _selected
from figures.looks import style
from figures.looks.look import current
from figures.selection.identity import UNEQUAL

NEEDS = "runs of any methods, trained in one setting, that kept their clients"

COST = "a minute per run"


@_selected.each_run()
def data(run: Run) -> xr.Dataset:
    """Change of the mean update by each cause, in percent, over algorithm, seed and round."""
    causes = run.cached(update_causes)
    _runs.require_moves(xr.concat([causes["mean"], causes.total], "norm"), run.name)
    changes = causes.relative
    return (100 * changes).assign_attrs(changes.attrs, units="%").to_dataset("cause")


def draw(ds: xr.Dataset) -> Figure:
    """A panel for each cause that changes more than a hundred-thousandth in a run."""
    if unknown := [str(name) for name in ds.data_vars if bool(ds[name].isnull().any())]:
        current().remark(f"not known in all rounds: {', '.join(unknown)}")
    shown = [name for name in WORDS if name in ds and bool((ds[name] > 1e-3).any())]
    if not shown and unknown:
        raise LookupError(f"no known cause changes the mean; of this run these are not known: {', '.join(unknown)}.")
    if not shown:
        raise LookupError("no cause changes the mean: clients are equal; train with --set clients.late=2, for example.")
    figure, axs = style.panels(1, len(shown), stacked=1 + (len(shown) > 4))
    for ax, name in zip(axs.flat, shown, strict=True):
        curves.curve(ds, ax=ax, variable=name, label=f"{WORDS[name]} [%]", **curves.DOTS)
        ax.set_ylim(bottom=0)
    size, most = max((float(ds[name].mean()), name) for name in shown)
    about = f"change of the mean update, in % of its length; largest on average: {WORDS[most]}, {size:.0f} %"
    return style.key(figure, axs.flat, title="; ".join(filter(None, (about, curves.band(ds)))))


WORDS = {**UNEQUAL, "noise": "server noise"}
"""The causes by name, in the order in which they act."""
