"""Accuracy over a setting, with and without IMA, and the gain, one line per method (IMA paper, Figs. 6a-c)."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.runs.run import Run
from drift.simulation.compare import mean_of_last
from figures.axes import curves, method_looks
from figures.gallery import _runs, _stack, _tables
from figures.looks import style
from figures.selection import setting_text

NEEDS = "runs of any methods with two values or more of a setting, such as the Dirichlet concentration"

COST = "seconds"


def data(
    runs: Sequence[Run],
    *,
    over: str = "",
    metric: str = "accuracy",
    last: int = 10,
    gain: bool = False,
    reference: str = "base",
) -> xr.Dataset:
    """The metric over row (a method), value (of the setting) and seed; with gain, the difference to the reference.

    Args:
        over: The setting by key, such as clients.concentration or local.epochs; by default that with most values.
        metric: A number recorded in every round.
        last: Rounds at the end that it is averaged over.
        gain: Also show by how much a method is above the reference.
        reference: "base" compares each method with IMA to the same without, a label (fedavg) all others to that one.

    Raises:
        LookupError: If no setting has two values, or nothing to be compared with was run.
        ValueError: If two runs have the same method, value and seed.
    """
    selected, key = _select(runs, over)
    table = _stack.by_cell(
        (((run.label, setting_text.value(run, key), run.experiment.seed), run) for run in selected),
        lambda first, second, cell: (
            f"{first.name} and {second.name} are both {cell[0]} with {key} = "
            f"{setting_text.value_text(cell[1])} and seed {cell[2]}; give runs of one setting."
        ),
    )
    rows, seeds = setting_text.sort_rows(row for row, _, _ in table), sorted({seed for _, _, seed in table})
    values = sorted({value for _, value, _ in table})
    late = {cell: mean_of_last(run, metric, last) for cell, run in table.items()}
    name = f"{'test ' if metric == 'accuracy' else ''}{metric}"
    unit = _tables.metric_unit(selected, metric)
    array = _stack.fill_array(late, {"row": rows, "value": values, "seed": seeds}, name, unit)
    ds = array.to_dataset(name=metric).assign_attrs(metric=metric, over=key, reference=reference)
    ds.value.attrs.update(long_name=setting_text.key_label(key))
    return _stack.name_runs(_with_gain(ds, metric, reference) if gain else ds, selected)


def draw(ds: xr.Dataset) -> Figure:
    """One line per method; the gain in a panel of its own."""
    metric = str(ds.attrs["metric"])
    shown = [metric, *(["gain"] if "gain" in ds else [])]
    figure, axs = style.panels(1, len(shown), width=style.WIDE if len(shown) > 1 else style.NARROW, height=2.9)
    for ax, name in zip(axs.flat, shown, strict=True):
        _lines(ds, name, ax)
    if "gain" in ds:
        curves.mark_level(axs[0, 1])
        points = ds.gain.attrs["units"] == "points"
        axs[0, 1].set_ylabel(f"gain{' [percentage points]' if points else ''}")
        other = str(ds.attrs["reference"])
        whose = "the same without IMA" if other == "base" else style.literal(setting_text.row_label(other))
        axs[0, 1].set_title(f"over {whose}", fontsize=style.small())
    return style.key(figure, axs.flat, title=curves.band(ds), columns=5 if len(shown) > 1 else 2)


def _lines(ds: xr.Dataset, name: str, ax: Axes) -> None:
    for row in map(str, ds.row.values):
        values = ds[name].sel(row=row)
        if not bool(values.notnull().any()):
            continue
        look = method_looks.line_look(row, marker="o", markersize=3.5, linewidth=1.1)
        look["label"] = style.literal(setting_text.row_label(row))
        curves.line_with_band(values, ax=ax, over="value", **look)
    values = ds.value.values.astype(float)
    if (values > 0).all() and values.max() >= 8 * values.min():
        ax.set_xscale("log")
    ax.set_xticks(values, [f"{value:g}" for value in values])
    ax.minorticks_off()
    style.name_axes(ax, style.text(ds.value), style.text(ds[name]))


def _with_gain(ds: xr.Dataset, metric: str, reference: str) -> xr.Dataset:
    rows = list(map(str, ds.row.values))
    against = {row: setting_text.base(row) if reference == "base" else reference for row in rows}
    pairs = {row: other for row, other in against.items() if other != row and other in rows}
    if not pairs:
        command = "fedscape sweep digits-shards2 --grid method=fedavg,ima local.epochs=1,3"
        raise _runs.missing(f"there is no run to compare with {', '.join(rows)}", command)
    points = 100 if ds[metric].attrs["units"] == "fraction" else 1
    gains = [
        points * (ds[metric].sel(row=row) - ds[metric].sel(row=pairs[row])).values
        if row in pairs
        else np.full(ds[metric].shape[1:], np.nan)
        for row in rows
    ]
    units = "points" if points == 100 else "1"
    return ds.assign(gain=(ds[metric].dims, np.stack(gains), {"long_name": "gain", "units": units}))


def _select(runs: Sequence[Run], over: str) -> tuple[list[Run], str]:
    """Runs that differ in method, seed and one setting, and that setting: of all, those with most values and methods.

    Raises:
        LookupError: If no setting has two values.
    """
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        for key in [over] if over else _numbers(run):
            if isinstance(setting_text.value(run, key), int | float):
                groups.setdefault((key, _rest(run, key)), []).append(run)

    def size(cell: tuple[str, str]) -> tuple[int, int]:
        group = groups[cell]
        return len({setting_text.value(run, cell[0]) for run in group}), len({run.label for run in group})

    best = max(groups, key=size, default=None)
    if best is None or size(best)[0] < 2:
        command = f"fedscape sweep digits-shards2 --grid method=fedavg,ima {over or 'local.epochs'}=1,3"
        raise _runs.missing(f"{len(runs)} runs do not have two values of {over or 'a setting'}", command)
    return groups[best], best[0]


def _rest(run: Run, key: str) -> str:
    """The settings that runs of one figure share, as text: rounds, task and clients without the setting of the figure.

    Local training is left out where it is not the setting, as methods may want their own.
    """
    content = {name: data for name, data in run.experiment.resolved().items() if name in ("rounds", "task", "clients")}
    if key.startswith("local."):
        content["local"] = run.experiment.resolved()["local"]
    *parents, last = key.split(".")
    table: Any = content
    for name in parents:
        table = table.get(name, {})
    if isinstance(table, dict):
        (table if last in table else table.get("partition", {})).pop(last, None)
    return json.dumps(content, sort_keys=True)


def _numbers(run: Run) -> Iterator[str]:
    """Keys of the settings of data, clients, partition and local training that are numbers."""
    content = run.experiment.resolved()
    clients = {**content["clients"], **content["clients"]["partition"]}
    for title, table in (("task", content["task"]), ("clients", clients), ("local", content["local"])):
        for name, value in table.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield f"{title}.{name}"
    yield "rounds"
