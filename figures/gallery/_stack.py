"""Results of several runs in one dataset: along method and seed, or panel by panel where grids differ."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from drift.runs.run import Run
from figures.axes import curves
from figures.looks import look, style
from figures.selection.groups import differing_names, settings
from figures.selection.run_selection import line_names

Compute = Callable[[Run], xr.Dataset]

CellKey = TypeVar("CellKey", bound=tuple[Any, ...])


def stack_runs(runs: Sequence[Run], compute: Compute) -> xr.Dataset:
    """Results of runs along `algorithm` and `seed`; NaN where a method was not run with a seed.

    Runs of one method that differ in more than their seed are algorithms of their own, named by `line_names`, such as
    "fedavg, lr 0.1".

    Raises:
        ValueError: If two runs of equal settings have one seed, or coordinates differ.
    """
    table: dict[tuple[str, int], Run] = {}
    names = line_names(runs)
    for run in runs:
        before = table.setdefault((names[run.folder], run.experiment.seed), run)
        if before.folder != run.folder:
            if run.seed is None or before.seed is None:
                unsaid = before.name if before.seed is None else run.name
                raise ValueError(
                    f"{before.name} and {run.name} are both {run.label}, and the seed of {unsaid} is unknown; give it "
                    "where the run is recorded or imported: seed=N in Recorder, recorded and record_checkpoints, "
                    "fedscape import --set seed=N."
                )
            differing = ", ".join(differing_names([settings(before), settings(run)])) or "nothing"
            raise ValueError(
                f"{before.name} and {run.name} are both {run.label} with seed {run.experiment.seed}, and differ in "
                f"{differing}; give runs that differ in method, options or seed."
            )
    results = {cell: compute(run) for cell, run in table.items()}
    bare = {cell: result.drop_attrs(deep=False) for cell, result in results.items()}
    algorithms, seeds = style.order(name for name, _ in table), sorted({seed for _, seed in table})
    nothing = next(iter(bare.values())).map(_missing)
    rows = [
        _joined([bare.get((name, seed), nothing) for seed in seeds], "seed", list(table.values()))
        for name in algorithms
    ]
    joined = _joined(rows, "algorithm", list(table.values())).assign_attrs(_common(list(results.values())))
    starts = {run.method.first_round(run.experiment.rounds) for run in runs if hasattr(run.method, "first_round")}
    joined = joined.assign_attrs({"averages_from": starts.pop()} if len(starts) == 1 else {})
    return name_runs(joined.assign_coords(seed=seeds, algorithm=algorithms), list(table.values()))


def mark_averaging(ds: xr.Dataset, axs: Iterable[Axes]) -> None:
    """A dotted line at the round from which IMA averages, named once, and a remark on lines equal before it."""
    start, rounds = ds.attrs.get("averages_from", np.inf), ds["round"].values
    if not rounds[0] < start <= rounds[-1]:
        return
    for index, ax in enumerate(axs):
        ax.axvline(start, color="#555555", linewidth=0.9, linestyle=":", zorder=1)
        if index:
            continue
        about: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        about |= {"ha": "right" if 2 * start > rounds[0] + rounds[-1] else "left", "fontsize": style.small()}
        ax.annotate("IMA averages from here", (start, 1), (0, 3), **about)  # above the lines, which may go anywhere
    before = next(iter(ds.data_vars.values())).sel(round=rounds[rounds < start])
    groups: dict[bytes, list[str]] = {}
    for name, values in curves.split_algorithms(before):
        groups.setdefault(values.values.tobytes(), []).append(style.label(str(name)))
    if equal := [" and ".join(names) for names in groups.values() if len(names) > 1]:
        look.current().remark(f"equal before round {start}: {', '.join(equal)}")


def measured(ds: xr.Dataset) -> list[str]:
    """Which of loss and error a dataset has: tasks without classes, such as regression, have no error."""
    return [name for name in ("loss", "error") if name in ds]


def by_cell(runs: Iterable[tuple[CellKey, Run]], refusal: Callable[[Run, Run, CellKey], str]) -> dict[CellKey, Run]:
    """Runs by their place in a figure, such as (method, seed); a run that is given twice counts once.

    Args:
        runs: Each with its place.
        refusal: The sentence for two runs in one place.

    Raises:
        ValueError: If two runs have one place.
    """
    table: dict[CellKey, Run] = {}
    for cell, run in runs:
        if (before := table.setdefault(cell, run)).folder != run.folder:
            raise ValueError(refusal(before, run, cell))
    return table


def fill_array(
    numbers: Mapping[Any, Any], axes: Mapping[str, Sequence[Any]], long_name: str = "", units: str = "", over: str = ""
) -> xr.DataArray:
    """Numbers by their labels as an array, NaN where there is none.

    Args:
        numbers: A number per tuple of labels, or with `over` a series, which may be shorter than others.
        axes: The labels of each dimension.
        over: A last dimension, that of the series, such as round.
    """
    length = max(map(len, numbers.values()), default=0) if over else 0
    array = np.full([*map(len, axes.values()), *([length] if over else [])], np.nan)
    for labels, values in numbers.items():
        cell: tuple[Any, ...] = tuple(
            list(axis).index(label) for axis, label in zip(axes.values(), labels, strict=True)
        )
        array[(*cell, slice(len(values))) if over else cell] = values
    coords = {**axes, over: range(length)} if over else axes
    about = {name: text for name, text in (("long_name", long_name), ("units", units)) if text}
    return xr.DataArray(array, coords, list(coords), attrs=about)


def accuracies(table: Mapping[CellKey, Run]) -> dict[CellKey, np.ndarray]:
    """Recorded test accuracy of runs by their place, at every round from 0 to its last one; NaN where not recorded."""
    lasts = {cell: run.rounds()[-1] for cell, run in table.items()}
    return {cell: run.metrics().accuracy.reindex(round=range(lasts[cell] + 1)).values for cell, run in table.items()}


def join_panels(panels: Iterable[tuple[str, xr.Dataset]]) -> xr.Dataset:
    """Surfaces with different grids in one dataset: joined by position, with their coordinates as variables.

    Args:
        panels: Each with the label of its panel. `panels(ds)` are the surfaces again.
    """
    by_position = []
    for label, panel in panels:
        panel = panel.assign_attrs(label=label)
        at = {f"at_{name}": (name, values.values, values.attrs) for name, values in panel.coords.items()}
        about = {f"is_{name}": value for name, value in panel.attrs.items() if name in _COMMON}
        by_position.append(panel.drop_vars(list(panel.coords)).assign(at).assign(about).drop_attrs(deep=False))
    return xr.concat(by_position, "panel", join="exact", combine_attrs="drop_conflicts")


def panels(ds: xr.Dataset) -> list[xr.Dataset]:
    """The surfaces of a result of `join_panels`, with their coordinates."""
    return [_panel(ds.isel(panel=index)) for index in range(ds.sizes["panel"])]


def _panel(selected: xr.Dataset) -> xr.Dataset:
    at = {str(name): values for name, values in selected.items() if str(name).startswith("at_")}
    about = {str(name): values for name, values in selected.items() if str(name).startswith("is_")}
    attrs = {name.removeprefix("is_"): values.item() for name, values in about.items()}
    coords = {name.removeprefix("at_"): (values.dims, values.values, values.attrs) for name, values in at.items()}
    return selected.drop_vars([*at, *about]).assign_coords(coords).assign_attrs(attrs)


def name_runs(ds: xr.Dataset, runs: Sequence[Run]) -> xr.Dataset:
    """The dataset with the names of the runs that it comes from."""
    return ds.assign_attrs(runs=", ".join(run.name for run in runs))


ACCURACY = ("test accuracy", "fraction")
"""Long name and units of accuracies."""

_SHOWN = ("block", "round", "split", "samples")
"""Attributes of a result: which round it is of, and which samples its numbers are averaged over."""

_COMMON = ("analysis", "isometric", "first", "second", "label", *_SHOWN)


def _common(results: Sequence[xr.Dataset]) -> dict[str, Any]:
    """What all results show alike: those of _SHOWN, and captions, that have one value."""
    first = results[0].attrs
    return {
        name: first[name]
        for name in (*_SHOWN, "caption")
        if name in first and all(result.attrs.get(name) == first[name] for result in results)
    }


def _missing(values: xr.DataArray) -> xr.DataArray:
    empty = values.where(False) if values.dtype.kind == "f" else values.astype(float).where(False)
    return empty.assign_attrs(values.attrs)


def _joined(pieces: list[xr.Dataset], dim: str, runs: list[Run]) -> xr.Dataset:
    try:
        return xr.concat(pieces, dim, join="exact", data_vars="all", coords="minimal", compat="equals")
    except ValueError as reason:
        names = ", ".join(run.name for run in runs)
        raise ValueError(f"results of {names} do not have the same coordinates; give runs of equal length.") from reason
