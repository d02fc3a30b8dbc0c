"""Tables of several numbers a run, one column each, beside what a paper prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from drift.runs.run import Run
from figures import papers
from figures.gallery import _tables


def several(
    runs: Sequence[Run],
    numbers: Mapping[str, Callable[[Run], float]],
    *,
    rows: str = "method",
    over: Sequence[str] = (),
    paper: str = "",
    item: str = "",
) -> xr.Dataset:
    """As `_tables.measured`, with a column a number for each setting; its name comes after the setting's.

    Args:
        numbers: Of a run, by name.
    """
    options: dict[str, Any] = {"rows": rows, "over": over, "paper": paper, "item": item}
    parts = [_tables.measured(runs, number, **options) for number in numbers.values()]
    columns = [", ".join(filter(None, (str(column), name))) for column in parts[0].column.values for name in numbers]
    joined = xr.concat([part.drop_vars("column") for part in parts], "name", join="exact", data_vars="all")
    joined = joined.stack(place=("column", "name"), create_index=False).rename(place="column")
    joined = joined.transpose("row", "column", ...).assign_coords(column=columns)
    joined["measured"] = joined.measured.transpose("row", "column", "seed")
    if "printed" not in joined:
        return joined
    held = np.full((joined.sizes["row"], len(columns)), np.nan)
    for one in papers.load(paper).item(item).numbers:
        if one.row in joined.row.values and one.column in columns:
            held[list(joined.row.values).index(one.row), columns.index(one.column)] = one.value
    return joined.assign(printed=(("row", "column"), held, joined.printed.attrs))


def after(number: Callable[..., float], rounds: Sequence[int]) -> dict[str, Callable[[Run], float]]:
    """`number(run, round)`, of the state after so many rounds, by name of the column, like "R = 3".

    Raises:
        ValueError: If a number of rounds is below 1.
    """
    if wrong := [count for count in rounds if count < 1]:
        raise ValueError(f"after has {wrong[0]}; give numbers of rounds trained, 1 or more.")
    return {f"R = {count}": partial(number, round=count - 1) for count in rounds}
