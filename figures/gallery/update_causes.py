"""What unequal clients change in the mean update over rounds: steps, lateness, stops, parts, sending, noise."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.counterfactual.update_causes import update_causes
from drift.runs.run import Run
from figures.axes import curves, method_looks
from figures.gallery import _runs, _selected
from figures.looks import style
from figures.looks.look import current
from figures.selection.identity import UNEQUAL

NEEDS = "runs of any methods, trained in one setting, that kept their clients"

COST = "a minute per run"


@_selected.each_run()
def data(run: Run) -> xr.Dataset:
    """Change of the mean update by each cause, in percent, over algorithm, seed and round."""
    causes = run.cached(update_causes, rounds=_runs.rounds_among(_runs.kept_clients(run), 5) or None)
    _runs.require_moves(xr.concat([causes["mean"], causes.total], "norm"), run.name)
    changes = causes.relative
    return (100 * changes).assign_attrs(changes.attrs, units="%").to_dataset("cause")


def draw(ds: xr.Dataset) -> Figure:
    """A bar for each cause that changes more than a hundred-thousandth in a run, the largest first; dots for rounds."""
    if unknown := [str(name) for name in ds.data_vars if bool(ds[name].isnull().any())]:
        current().remark(f"not known in all rounds: {', '.join(unknown)}")
    shown = [name for name in WORDS if name in ds and bool((abs(ds[name]) > 1e-3).any())]
    if not shown and unknown:
        raise LookupError(f"no known cause changes the mean; of this run these are not known: {', '.join(unknown)}.")
    if not shown:
        raise LookupError("no cause changes the mean: clients are equal; train with --set clients.late=2, for example.")
    values = ds[shown].to_dataarray("cause")
    values = values.sortby(-values.mean([name for name in values.dims if name != "cause"]))
    parts = curves.split_algorithms(values)
    minus = f", minus that of {style.label(other)}" if (other := current().look.paired_to) else ""
    figure, axs = style.panels(1, 1, width=style.NARROW, height=1.1 + 0.22 * len(shown) * len(parts))
    for index, (method, series) in enumerate(parts):
        table = series.transpose("cause", ...).values.reshape(len(shown), -1)
        at = np.arange(len(shown)) + 0.8 * ((index + 0.5) / len(parts) - 0.5)
        means = series.mean([name for name in series.dims if name != "cause"]).values
        axs[0, 0].barh(at, means, 0.7 / len(parts), alpha=0.6, **method_looks.method_look(method))
        axs[0, 0].scatter(table.T, np.tile(at, (table.shape[1], 1)), s=3, color="black", zorder=3)
    axs[0, 0].set_yticks(range(len(shown)), [WORDS[str(name)] for name in values.cause.values])
    axs[0, 0].invert_yaxis()
    style.name_axes(axs[0, 0], f"change of the mean update\n[% of its length]{minus}", "")
    most = WORDS[str(values.cause[0].item())]
    about = f"largest change{minus}: {most}, {float(values[0].mean()):.0f} % (bars: means; dots: rounds and seeds)"
    return style.key(figure, axs.flat, title=about)


WORDS = {**UNEQUAL, "noise": "server noise"}
"""The causes by name, in the order in which they act."""
