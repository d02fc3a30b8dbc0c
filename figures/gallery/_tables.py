"""Tables of one number a run: rows and columns by what runs are, and beside them what a paper prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.runs.run import Run
from figures import papers
from figures.gallery import _stack
from figures.gallery._ruled import PALE, draw, percent
from figures.selection import partition_text, setting_text

__all__ = ["PALE", "draw", "late", "measured", "percent"]


def late(run: Run, metric: str, last: int) -> float:
    """Mean of a recorded number over the last rounds of a run, NaN where it was not recorded.

    Raises:
        ValueError: If `last` is no number of rounds.
    """
    if last < 1:
        raise ValueError(f"last is {last}; give the number of rounds that are averaged, 1 or more.")
    values = [run.round(index).metrics.get(metric, np.nan) for index in run.rounds()[-last:]]
    return float(np.mean(values)) if values else float("nan")


def measured(
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
        raise LookupError(_stack.absent("no run was given", "fedscape train digits-shards2"))
    called, quick = _from_paper(runs, paper, item) if paper else (_in_words(runs), set())
    if over and len(set(called.values())) == 1:
        called = dict.fromkeys(called, "")
    table: dict[tuple[str, str, int], Run] = {}
    for run in runs:
        parts = [called[run.folder], *(setting_text.text(setting_text.value(run, key)) for key in over)]
        row = setting_text.text(setting_text.value(run, rows))
        place = row, ", ".join(filter(None, parts)), run.experiment.seed
        before = table.setdefault(place, run)
        if before.folder != run.folder:
            raise ValueError(
                f"{before.name} and {run.name} are both {row} in {place[1] or 'one setting'} with seed {place[2]}; "
                "name the setting that tells them apart, as in --set over='[\"local.epochs\"]'."
            )
    printed = papers.load(paper).item(item).numbers if paper else ()
    names = _order([row for row, _, _ in table], [one.row for one in printed], rows)
    columns = _order([column for _, column, _ in table], [one.column for one in printed])
    seeds = sorted({seed for _, _, seed in table})
    held = np.full((len(names), len(columns), len(seeds)), np.nan)
    hurried = np.zeros(len(columns), int)
    for (row, column, seed), run in table.items():
        held[names.index(row), columns.index(column), seeds.index(seed)] = number(run)
        hurried[columns.index(column)] |= run.folder in quick
    found = xr.Dataset(
        {"measured": (("row", "column", "seed"), held), "quick": ("column", hurried, {"long_name": "quick variant"})},
        coords={"row": names, "column": columns, "seed": seeds},
        attrs={"rows": rows, "over": ", ".join(over)},
    )
    if printed:
        values = np.full((len(names), len(columns)), np.nan)
        for one in printed:
            if one.row in names and one.column in columns:
                scale = 100 if one.units == "%" else 1
                values[names.index(one.row), columns.index(one.column)] = one.value / scale
        found["printed"] = (("row", "column"), values, {"long_name": f"printed in the paper, {item}"})
    return _stack.described(found, runs)


def _from_paper(runs: Sequence[Run], paper: str, item: str) -> tuple[dict[Any, str], set[Any]]:
    """Label of each run's setting in an item of a paper, and the folders of runs of quick variants.

    Raises:
        LookupError: If none of the runs belongs to it.
    """
    known = papers.load(paper).item(item)
    parts = papers.found(known, runs)
    called = {run.folder: part.setting.label for part in parts for run in part.runs}
    if absent := [run.name for run in runs if run.folder not in called]:
        lines = papers.commands(known, known.settings[0], quick=True)
        raise LookupError(_stack.absent(f"{absent[0]} is no run of {known.item} of paper {paper}", lines[-1]))
    return called, {run.folder for part in parts if part.quick for run in part.runs}


def _in_words(runs: Sequence[Run]) -> dict[Any, str]:
    """Each run's setting by what tells the given ones apart: data, model, partition, clients, rounds."""
    parts = {
        run.folder: (
            run.experiment.task.dataset.replace("_", " "),
            run.experiment.task.model.replace("_", " "),
            partition_text.partition_of(run),
            f"{run.experiment.clients.per_round} of {run.experiment.clients.number} clients",
            f"{run.experiment.rounds} rounds",
        )
        for run in runs
    }
    kept = [place for place in range(5) if place in (0, 2) or len({told[place] for told in parts.values()}) > 1]
    return {folder: ", ".join(told[place] for place in kept) for folder, told in parts.items()}


def _order(found: Sequence[str], printed: Sequence[str], key: str = "") -> list[str]:
    """Names as the paper orders them, others after: methods as in legends, numbers by size, else as they came."""
    first = [name for name in dict.fromkeys(printed) if name in found]
    rest = [name for name in dict.fromkeys(found) if name not in first]
    if key in ("method", "base", "pool"):
        return [*first, *setting_text.in_order(rest)]
    try:
        return [*first, *sorted(rest, key=float)]
    except ValueError:
        return [*first, *rest]
