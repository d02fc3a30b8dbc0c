"""Test accuracy over rounds, a panel per setting, one line per method (FedLAW paper, Figs. 15-17)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _runs, _stack, _tables
from figures.looks import style
from figures.selection import partition_text, setting_text

NEEDS = "runs of any methods in any settings"

COST = "seconds"


def data(runs: Sequence[Run], *, over: str | Sequence[str] = ()) -> xr.Dataset:
    """accuracy (fraction) over panel, algorithm, seed and round; NaN after the end of a shorter run.

    A panel is a dataset, model, partition and cohort.

    Args:
        over: Further settings by key that panels differ in, such as local.epochs; a text or a list.

    Raises:
        LookupError: If there are no runs.
        ValueError: If two runs of a panel have the same method and seed.
    """
    if not runs:
        raise _runs.missing("no run was given", "fedscape train digits-shards2")
    over = setting_text.keys(over, runs)
    cells = [((run.label, _panel(run, over), run.experiment.seed), run) for run in runs]
    table = _stack.by_cell(cells, partial(_tables.same_cell, cells))
    panels = list(dict.fromkeys(panel for _, panel, _ in table))
    names, seeds = style.order(name for name, _, _ in table), sorted({seed for _, _, seed in table})
    accuracies = _stack.accuracies({(panel, name, seed): run for (name, panel, seed), run in table.items()})
    axes: dict[str, Sequence[Any]] = {"panel": panels, "algorithm": names, "seed": seeds}
    array = _stack.fill_array(accuracies, axes, *_stack.ACCURACY, "round")
    return _stack.name_runs(array.to_dataset(name="accuracy"), list(table.values()))


def draw(ds: xr.Dataset) -> Figure:
    """Up to three panels in a row, each on its own scale; a title says what differs from the other panels."""
    count = ds.sizes["panel"]
    columns = min(3, count) if count != 4 else 2
    rows = -(-count // columns)
    wide = style.WIDE if columns > 1 else style.NARROW
    figure, axs = style.panels(rows, columns, width=wide, height=2.1 * rows + 0.6)
    titles = setting_text.differing_words(list(map(str, ds.panel.values)))
    for ax, panel, title in zip(axs.flat, ds.panel.values, titles, strict=False):
        row = ds.sel(panel=panel).dropna("round", how="all", subset=["accuracy"])
        curves.curve(row, ax=ax, label=None if style.is_first(ax) else "", linewidth=1.0)
        ax.set_title(style.literal(title), fontsize=style.small())
    for ax in axs.flat[count:]:
        ax.set_axis_off()
    return style.key(figure, axs.flat[:count], title=curves.band(ds), columns=5 if columns > 1 else 2)


def _panel(run: Run, over: Sequence[str]) -> str:
    spec = run.experiment
    few = spec.clients.per_round < spec.clients.number
    texts = (
        run.task_name,
        partition_text.partition_label(run),
        f"{spec.clients.per_round} of {spec.clients.number} clients" if few else "",
        *(f"{setting_text.key_label(key)} {setting_text.value_text(setting_text.value(run, key))}" for key in over),
    )
    return ", ".join(filter(None, texts))
