"""Tables of one number a run: rows and columns by what runs are, and beside them what a paper prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from drift.runs.run import Run
from figures import papers
from figures.gallery import _runs, _stack
from figures.selection import partition_text, setting_text


def mean_of_last(run: Run, metric: str, last: int) -> float:
    """Mean of a recorded number over the last rounds of a run, NaN where it was not recorded.

    Raises:
        ValueError: If `last` is no number of rounds.
    """
    if last < 1:
        raise ValueError(f"last is {last}; give the number of rounds that are averaged, 1 or more.")
    values = [run.round(index).metrics.get(metric, np.nan) for index in run.rounds()[-last:]]
    return float(np.mean(values)) if values else float("nan")


def tabulate(
    runs: Sequence[Run],
    number: Callable[[Run], float],
    *,
    rows: str = "method",
    over: Sequence[str] = (),
    paper: str = "",
    item: str = "",
) -> xr.Dataset:
    """One number a run over row, column and seed; where a paper prints them, its numbers over row and column.

    Args:
        number: Of a run.
        rows: "method", "base" (what IMA averages counts as the same) or a setting by key.
        over: Settings by key whose values are columns, after the runs' setting where there are several.
        paper, item: Whose numbers stand beside, such as ima and "Table I"; settings are then called as there.

    Returns:
        Dataset with measured and, for a paper, printed (row, column), quick (column; 1 for runs of quick variants).

    Raises:
        LookupError: If there are no runs.
        ValueError: If two runs have the same row, column and seed.
    """
    if not runs:
        raise _runs.missing("no run was given", "fedscape train digits-shards2")
    labels, quick = _from_paper(runs, paper, item) if paper else (_in_words(runs), set())
    if over and len(set(labels.values())) == 1:
        labels = dict.fromkeys(labels, "")
    table: dict[tuple[str, str, int], Run] = {}
    for run in runs:
        parts = [labels[run.folder], *(setting_text.value_text(setting_text.value(run, key)) for key in over)]
        row = setting_text.value_text(setting_text.value(run, rows))
        place = row, ", ".join(filter(None, parts)), run.experiment.seed
        before = table.setdefault(place, run)
        if before.folder != run.folder:
            raise ValueError(
                f"{before.name} and {run.name} are both {row} in {place[1] or 'one setting'} with seed {place[2]}; "
                "name the setting that tells them apart, as in --set over='[\"local.epochs\"]'."
            )
    printed = papers.load(paper).item(item).numbers if paper else ()
    names = _order([row for row, _, _ in table], [entry.row for entry in printed], rows)
    columns = _order([column for _, column, _ in table], [entry.column for entry in printed])
    seeds = sorted({seed for _, _, seed in table})
    array = np.full((len(names), len(columns), len(seeds)), np.nan)
    quick_columns = np.zeros(len(columns), int)
    for (row, column, seed), run in table.items():
        array[names.index(row), columns.index(column), seeds.index(seed)] = number(run)
        quick_columns[columns.index(column)] |= run.folder in quick
    ds = xr.Dataset(
        {
            "measured": (("row", "column", "seed"), array),
            "quick": ("column", quick_columns, {"long_name": "quick variant"}),
        },
        coords={"row": names, "column": columns, "seed": seeds},
        attrs={"rows": rows, "over": ", ".join(over)},
    )
    if printed:
        values = np.full((len(names), len(columns)), np.nan)
        for entry in printed:
            if entry.row in names and entry.column in columns:
                scale = 100 if entry.units == "%" else 1
                values[names.index(entry.row), columns.index(entry.column)] = entry.value / scale
        ds["printed"] = (("row", "column"), values, {"long_name": f"printed in the paper, {item}"})
    return _stack.name_runs(ds, runs)


def tabulate_several(
    runs: Sequence[Run],
    numbers: Mapping[str, Callable[[Run], float]],
    *,
    rows: str = "method",
    over: Sequence[str] = (),
    paper: str = "",
    item: str = "",
) -> xr.Dataset:
    """As `measured`, with a column a number for each setting; its name comes after the setting's.

    Args:
        numbers: Of a run, by name.
    """
    options: dict[str, Any] = {"rows": rows, "over": over, "paper": paper, "item": item}
    parts = [tabulate(runs, number, **options) for number in numbers.values()]
    columns = [", ".join(filter(None, (str(column), name))) for column in parts[0].column.values for name in numbers]
    joined = xr.concat([part.drop_vars("column") for part in parts], "name", join="exact", data_vars="all")
    joined = joined.stack(place=("column", "name"), create_index=False).rename(place="column")
    joined = joined.transpose("row", "column", ...).assign_coords(column=columns)
    joined["measured"] = joined.measured.transpose("row", "column", "seed")
    if "printed" not in joined:
        return joined
    array = np.full((joined.sizes["row"], len(columns)), np.nan)
    for entry in papers.load(paper).item(item).numbers:
        if entry.row in joined.row.values and entry.column in columns:
            array[list(joined.row.values).index(entry.row), columns.index(entry.column)] = entry.value
    return joined.assign(printed=(("row", "column"), array, joined.printed.attrs))


def label_numbers(ds: xr.Dataset, long_name: str, units: str) -> xr.Dataset:
    """A table with units, and with a long name for numbers that have none."""
    for name in {"measured", "printed"} & set(ds):
        ds[name].attrs = {"long_name": long_name, **ds[name].attrs, "units": units}
    return ds


def over_text(ds: xr.Dataset) -> str:
    """The settings whose values are columns of a table, in words."""
    return ", ".join(setting_text.key_label(key) for key in str(ds.attrs["over"]).split(", ") if key)


def numbers_after(number: Callable[..., float], rounds: Sequence[int]) -> dict[str, Callable[[Run], float]]:
    """`number(run, round)`, of the state after so many rounds, by name of the column, like "R = 3".

    Raises:
        ValueError: If a number of rounds is below 1.
    """
    if wrong := [count for count in rounds if count < 1]:
        raise ValueError(f"after has {wrong[0]}; give numbers of rounds trained, 1 or more.")
    return {f"R = {count}": partial(number, round=count - 1) for count in rounds}


def _from_paper(runs: Sequence[Run], paper: str, item: str) -> tuple[dict[Any, str], set[Any]]:
    """Label of each run's setting in an item of a paper, and the folders of runs of quick variants.

    Raises:
        LookupError: If none of the runs belongs to it.
    """
    paper_item = papers.load(paper).item(item)
    parts = papers.found(paper_item, runs)
    labels = {run.folder: part.setting.label for part in parts for run in part.runs}
    if absent := [run.name for run in runs if run.folder not in labels]:
        lines = papers.commands(paper_item, paper_item.settings[0], quick=True)
        raise _runs.missing(f"{absent[0]} is no run of {paper_item.item} of paper {paper}", lines[-1])
    return labels, {run.folder for part in parts if part.quick for run in part.runs}


def _in_words(runs: Sequence[Run]) -> dict[Any, str]:
    """Each run's setting by what tells the given ones apart: data, model, partition, clients, rounds."""
    parts = {
        run.folder: (
            run.experiment.task.dataset.replace("_", " "),
            run.experiment.task.model.replace("_", " "),
            partition_text.partition_label(run),
            f"{run.experiment.clients.per_round} of {run.experiment.clients.number} clients",
            f"{run.experiment.rounds} rounds",
        )
        for run in runs
    }
    shown = [place for place in range(5) if place in (0, 2) or len({words[place] for words in parts.values()}) > 1]
    return {folder: ", ".join(words[place] for place in shown) for folder, words in parts.items()}


def _order(names: Sequence[str], printed: Sequence[str], key: str = "") -> list[str]:
    """Names as the paper orders them, others after: methods as in legends, numbers by size, else as they came."""
    first = [name for name in dict.fromkeys(printed) if name in names]
    rest = [name for name in dict.fromkeys(names) if name not in first]
    if key in ("method", "base", "pool"):
        return [*first, *setting_text.sort_rows(rest)]
    try:
        return [*first, *sorted(rest, key=float)]
    except ValueError:
        return [*first, *rest]
