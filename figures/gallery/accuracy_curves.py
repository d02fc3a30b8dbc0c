"""Accuracy over rounds for each value of a setting, a panel per method (IMA paper, Figs. 7a and 7b)."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from drift.runs.run import Run
from figures.axes import curves, method_looks
from figures.gallery import _runs, _stack
from figures.looks import look, palette, style
from figures.selection import setting_text

NEEDS = "runs of any methods, trained in one setting; lines differ in a setting, such as the start of IMA"

COST = "seconds"


def data(runs: Sequence[Run], *, over: str | Sequence[str] = "method.start") -> xr.Dataset:
    """accuracy (fraction) over row (a method), line (values of the settings), seed and round.

    Runs whose method has none of the settings, such as FedAvg for settings of IMA, have a separate line.

    Args:
        over: Settings by key that distinguish lines, such as method.start; a text or a list.

    Raises:
        LookupError: If there are no runs.
        ValueError: If two runs have the same method, values and seed.
    """
    over = setting_text.keys(over, () if over == "method.start" else runs)

    selected = _runs.select_comparable(runs, over)
    labels = {run.label for run in selected}

    def cell(run: Run) -> tuple[str, tuple[Any, ...], int]:
        base = setting_text.base(run.label)  # with and without IMA in one panel, if there are both
        values = tuple(setting_text.value(run, key) for key in over)
        return base if base in labels else run.label, values, run.experiment.seed

    table = _stack.by_cell(
        ((cell(run), run) for run in selected),
        lambda first, second, _: (
            f"{first.name} and {second.name} agree in method, seed and {', '.join(over)}; name in "
            "over the setting in which they differ, or give fewer runs."
        ),
    )
    rows, seeds = style.order(row for row, _, _ in table), sorted({seed for _, _, seed in table})
    lines = sorted({values for _, values, _ in table}, key=lambda values: tuple((v is not None, v) for v in values))
    names = [_name(values, over) for values in lines]
    accuracies = _stack.accuracies(
        {(row, names[lines.index(values)], seed): run for (row, values, seed), run in table.items()}
    )
    array = _stack.fill_array(accuracies, {"row": rows, "line": names, "seed": seeds}, *_stack.ACCURACY, "round")
    ds = array.to_dataset(name="accuracy").assign_attrs(over=", ".join(over))
    return _stack.name_runs(ds, list(table.values()))


def draw(ds: xr.Dataset) -> Figure:
    """One panel per method that has the setting, and one of the others; on one scale without the steep beginning."""
    rows = _with_setting(ds)
    others = [str(row) for row in ds.row.values if str(row) not in rows] if rows else []
    rows = rows or list(map(str, ds.row.values))
    count = len(rows) + bool(others)
    columns = min(3, count)
    wide = style.WIDE if columns > 1 else style.NARROW
    figure, axs = style.panels(-(-count // columns), columns, width=wide, height=2.4 * -(-count // columns) + 0.6)
    coloured = [name for name in ds.line.values if name != _WITHOUT]
    looks = zip(style.steps(len(coloured)), cycle(palette.DASHES), strict=False)
    shades = {name: {"color": shade, "linestyle": dash} for name, (shade, dash) in zip(coloured, looks, strict=True)}
    shades[_WITHOUT] = {"color": "#555555", "linestyle": (0, (3, 1))}
    for ax, row in zip(axs.flat, rows, strict=False):
        for name in map(str, ds.line.values):
            values = ds.accuracy.sel(row=row, line=name)
            curves.line_with_band(values, ax=ax, over="round", label=name, linewidth=1.1, **shades[name])
        ax.set_title(style.label(row))
    for name in others:
        values = ds.accuracy.sel(row=name, line=_WITHOUT)
        line = method_looks.line_look(name, linewidth=1.1)
        curves.line_with_band(values, ax=axs.flat[count - 1], over="round", **line)
    if others:
        axs.flat[count - 1].set_title("methods without the setting")
    for ax in axs.flat[count:]:
        ax.set_axis_off()
    for ax in axs.flat[:count]:
        style.name_axes(ax, "round", "test accuracy")
    _cut(ds, list(axs.flat[:count]))
    return style.key(figure, axs.flat[:count], title=curves.band(ds), columns=3 if columns > 1 else 2)


_WITHOUT = "without"


def _with_setting(ds: xr.Dataset) -> list[str]:
    """Methods that have a line for a value of the setting."""
    lines = ds.accuracy.sel(line=[name for name in ds.line.values if name != _WITHOUT])
    shown = lines.notnull().any([dim for dim in lines.dims if dim != "row"])
    return [str(name) for name in ds.row.values[shown.values]]


def _name(values: Sequence[Any], over: Sequence[str]) -> str:
    if all(value is None for value in values):
        return _WITHOUT
    named = [_SHORT.get(key, setting_text.key_label(key)) for key in over]
    return ", ".join(f"{name} {setting_text.value_text(value)}" for name, value in zip(named, values, strict=True))


_SHORT = {"method.start": "start", "method.window": "window"}


def _cut(ds: xr.Dataset, axs: Sequence[Any]) -> None:
    """A common vertical range of the later half, with a tenth of it to spare."""
    later = ds.accuracy.isel(round=slice(ds.sizes["round"] // 2, None))
    low, high = float(later.min()), float(later.max())
    room = max(0.1 * (high - low), 0.005)
    visible = (ds.accuracy >= low - room).any([dim for dim in ds.accuracy.dims if dim != "round"])
    if first := int(visible.values.argmax()):
        look.current().remark(f"rounds before {first}, with accuracies below {low - room:.2f}, are cut off")
    for ax in axs:
        ax.set_xlim(left=first)
        ax.set_ylim(max(0.0, low - room), min(1.0, high + room))
