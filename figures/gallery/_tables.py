"""Tables of numbers of runs: rows and columns are methods and settings; a paper's printed numbers are added."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import xarray as xr

from drift.runs.metrics import number_attributes
from drift.runs.run import Run
from figures import papers
from figures.gallery import _runs, _stack
from figures.selection import partition_text, setting_text
from figures.selection.groups import differing_names, grouped, settings
from figures.selection.run_selection import join_names


def metric_unit(runs: Sequence[Run], metric: str) -> str:
    """Unit of a recorded number; 1 for a loss whose unit differs between the runs."""
    units = {run.loss_units for run in runs}
    return number_attributes(metric, units.pop() if len(units) == 1 else "1")["units"]


def tabulate(
    runs: Sequence[Run],
    number: Callable[[Run], float],
    *,
    rows: str = "method",
    over: str | Sequence[str] = (),
    paper: str = "",
    item: str = "",
) -> xr.Dataset:
    """One number per run over row, column and seed; where a paper prints them, its numbers over row and column.

    Args:
        number: Of a run.
        rows: "method", "base" (what IMA averages counts as the same) or a setting by key.
        over: Settings by key whose values are columns, after the runs' setting where there are several; a text or list.
        paper, item: Whose printed numbers are added, such as ima and "Table I"; settings have its names.

    Returns:
        Dataset with measured and, for a paper, printed (row, column), quick (column; 1 for runs of quick variants).

    Raises:
        LookupError: If there are no runs, or none has a setting.
        ValueError: If two runs have the same row, column and seed.
    """
    if not runs:
        raise _runs.missing("no run was given", "fedscape train digits-shards2")
    over = setting_text.keys(over, () if paper else runs)
    labels, quick = _from_paper(runs, paper, item) if paper else (_in_words(runs), set())
    if over and len(set(labels.values())) == 1 and not paper:  # printed columns have the names of settings
        labels = dict.fromkeys(labels, "")

    def cell(run: Run) -> tuple[str, str, int]:
        words = [labels[run.folder], *(setting_text.value_text(setting_text.value(run, key)) for key in over)]
        row = setting_text.value_text(setting_text.value(run, rows))
        return row, ", ".join(filter(None, words)), run.experiment.seed

    cells = [(cell(run), run) for run in runs]
    table = _stack.by_cell(cells, partial(same_cell, cells))
    printed = papers.load(paper).item(item).numbers if paper else ()
    names = _order([row for row, _, _ in table], [entry.row for entry in printed], rows)
    columns = _order([column for _, column, _ in table], [entry.column for entry in printed])
    seeds = sorted({seed for _, _, seed in table})
    numbers = {cell: number(run) for cell, run in table.items()}
    measured = _stack.fill_array(numbers, {"row": names, "column": columns, "seed": seeds})
    of_quick = {column for (_, column, _), run in table.items() if run.folder in quick}
    quick_columns = np.array([int(column in of_quick) for column in columns])
    ds = measured.to_dataset(name="measured").assign_attrs(rows=rows, over=", ".join(over))
    ds["quick"] = ("column", quick_columns, {"long_name": "quick variant"})
    if printed:
        ds["printed"] = _printed(printed, names, columns, f"printed in the paper, {item}", 100)
        ds.attrs["reservation"] = papers.reservation(papers.load(paper).item(item), runs)
    return _stack.name_runs(ds, runs)


def takes_axes(data: Callable[..., xr.Dataset]) -> Callable[..., xr.Dataset]:
    """Decorator of a figure's `data`: its `**axes` are the options rows, over, paper and item of `tabulate`."""
    taken, offered = (inspect.signature(function).parameters for function in (data, tabulate))
    parameters = [*list(taken.values())[:-1], *(offered[name] for name in ("rows", "over", "paper", "item"))]
    data.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return data


def tabulate_several(
    runs: Sequence[Run], numbers: Mapping[str, Callable[[Run], float]], *, paper: str = "", item: str = "", **axes: Any
) -> xr.Dataset:
    """As `tabulate`, with one column per setting and number; its name is that of the setting and of the number.

    Args:
        numbers: Of a run, by name.
        axes: rows and over of `tabulate`.
    """
    tables = [tabulate(runs, number, paper=paper, item=item, **axes) for number in numbers.values()]
    columns = [", ".join(filter(None, (str(column), name))) for column in tables[0].column.values for name in numbers]
    joined = xr.concat([table.drop_vars("column") for table in tables], "name", join="exact", data_vars="all")
    joined = joined.stack(place=("column", "name"), create_index=False).rename(place="column")
    joined = joined.transpose("row", "column", ...).assign_coords(column=columns)
    joined["measured"] = joined.measured.transpose("row", "column", "seed")
    if "printed" in joined:
        entries = papers.load(paper).item(item).numbers
        joined["printed"] = _printed(entries, joined.row.values.tolist(), columns, joined.printed.long_name, 1)
    return joined


def _printed(
    entries: Sequence[papers.Number], rows: Sequence[str], columns: Sequence[str], name: str, percent: float
) -> xr.DataArray:
    """Numbers that a paper prints, over row and column; those in percent are divided by `percent`."""
    values = {
        (entry.row, entry.column): entry.value / (percent if entry.units == "%" else 1)
        for entry in entries
        if entry.row in rows and entry.column in columns
    }
    return _stack.fill_array(values, {"row": rows, "column": columns}, name)


def same_cell(cells: Sequence[tuple[Any, Run]], first: Run, second: Run, cell: tuple[str, str, int]) -> str:
    """The refusal of two runs with the same row, setting and seed, with all settings in which runs of a cell differ."""
    same = f"{first.name} and {second.name} are both {cell[0]} in {cell[1] or 'one setting'} with seed {cell[2]}"
    alike = grouped(cells, lambda pair: pair[0]).values()
    names = (differing_names([settings(run, seed=False) for _, run in pairs]) for pairs in alike)
    if not (differing := list(dict.fromkeys(chain.from_iterable(names)))):
        return f"{same}; leave one out."
    it, over = "them" if len(differing) > 1 else "it", ",".join(differing)
    return f"{same}, and differ in {join_names(differing)}; name {it} in over, as in --set over={over}."


def label_numbers(ds: xr.Dataset, long_name: str, units: str, **about: int) -> xr.Dataset:
    """A table with units, and with a long name for numbers that have none; `digits` as `figures.texts.table` has it."""
    for name in {"measured", "printed"} & set(ds):
        ds[name].attrs = {"long_name": long_name, **ds[name].attrs, "units": units, **about}
    return ds


def numbers_after(number: Callable[..., float], rounds: Sequence[int]) -> dict[str, Callable[[Run], float]]:
    """`number(run, round)` after each of these numbers of rounds, by the name of its column, like "R = 3".

    A run's first round is R = 1, whatever its number.

    Raises:
        ValueError: If a number of rounds is below 1.
    """
    if wrong := [count for count in rounds if count < 1]:
        raise ValueError(f"after has {wrong[0]}; give numbers of rounds trained, 1 or more.")

    def after(run: Run, count: int) -> float:
        return number(run, round=min(run.rounds(), default=0) + count - 1)

    return {f"R = {count}": partial(after, count=count) for count in rounds}


def _from_paper(runs: Sequence[Run], paper: str, item: str) -> tuple[dict[Any, str], set[Any]]:
    """Label of each run's setting in an item of a paper, and the folders of runs of quick variants.

    Raises:
        LookupError: If none of the runs belongs to it.
    """
    paper_item = papers.load(paper).item(item)
    matched = papers.match_runs(paper_item, runs)
    labels = {run.folder: papers.setting_of(paper_item, run).label for run in papers.stand_ins(paper_item, runs)}
    labels |= {run.folder: match.setting.label for match in matched for run in match.runs}
    if absent := [run.name for run in runs if run.folder not in labels]:
        lines = papers.commands(paper_item, paper_item.settings[0], quick=True)
        raise _runs.missing(f"{absent[0]} is not a run of {paper_item.item} of paper {paper}", lines[-1])
    return labels, {run.folder for match in matched if match.quick for run in match.runs}


def _in_words(runs: Sequence[Run]) -> dict[Any, str]:
    """Each run's setting in words: data, partition, and of model, clients and rounds those that differ."""
    words_of = {
        run.folder: (
            run.data_name.replace("_", " "),
            run.model_name.replace("_", " "),
            partition_text.partition_label(run),
            f"{run.experiment.clients.per_round} of {run.experiment.clients.number} clients",
            f"{run.experiment.rounds} rounds",
        )
        for run in runs
    }
    shown = [index for index in range(5) if index in (0, 2) or len({words[index] for words in words_of.values()}) > 1]
    return {folder: ", ".join(words[index] for index in shown) for folder, words in words_of.items()}


def _order(names: Sequence[str], printed: Sequence[str], key: str = "") -> list[str]:
    """Names in the order of the paper, then the others: methods as in legends, numbers by size, else as they came."""
    first = [name for name in dict.fromkeys(printed) if name in names]
    rest = [name for name in dict.fromkeys(names) if name not in first]
    if key in ("method", "base", "pool"):
        return [*first, *setting_text.sort_rows(rest)]
    try:
        return [*first, *sorted(rest, key=float)]
    except ValueError:
        return [*first, *rest]
