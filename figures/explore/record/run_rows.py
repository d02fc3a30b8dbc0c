"""Rows of the table of runs, and the settings in which runs differ; rounds are not read for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pandas as pd

from drift.runs.growing_run import GrowingRun
from drift.runs.run import Run
from figures.axes.units import ABSENT
from figures.explore.shell import html_table
from figures.explore.work.open_runs import PROBLEMS, OpenRuns
from figures.looks import palette
from figures.selection.groups import differing_names, groups, settings
from figures.selection.partition_text import partition_label
from figures.selection.setting_text import value_text

COLUMNS = {
    "method": "method",
    "seed": "seed",
    "data": "data",
    "partition": "partition",
    "done": "done",
    "rounds": "rounds",
    "accuracy": "accuracy",
    "loss": "loss",
    "updated": "updated",
}
"""Columns that every table has, with their headings; settings in which runs differ are further ones."""

MOST = 24
"""Settings that become columns, at most."""

OWN_COLUMN = ("method.name", "method.called", "seed", "rounds", "task.dataset", "clients.partition")
"""Settings that `COLUMNS` show, by the beginning of their names."""

UNIMPORTANT = ("keep", "threads", "device", "engine")
"""Settings of how a run is computed and stored, by the beginning of their names."""


def run_row(runs: OpenRuns, name: str) -> dict[str, Any]:
    """What the table shows of a run: `COLUMNS`, `problem`, and its settings by dotted name.

    A run that cannot be read any further has its problem only.
    """
    try:
        run = runs.described(name)
        if problem := runs.problem(name):
            return {"problem": problem}
        experiment, last = run.experiment, run.latest()
        row = {
            "method": palette.label(run.label),
            "seed": run.seed,
            "data": run.data_name,
            "partition": partition_label(run),
            "done": int(last["rounds"]),
            "rounds": experiment.rounds,
            "accuracy": last.get("accuracy"),
            "loss": last.get("loss"),
            "updated": _time(run),
            "problem": "",
        }
        return {**{key: value_text(value) for key, value in settings(run).items()}, **row}
    except PROBLEMS as reason:
        return {"problem": " ".join(str(reason).split())}


def table(rows: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Rows by the name of their run, as `run_row` returns them, with the settings in which they differ.

    A setting is a column where runs have two values of it; one that only some methods have is not.
    """
    frame = pd.DataFrame.from_dict({name: _flat(row) for name, row in rows.items()}, orient="index", columns=[*COLUMNS])
    shown = {name: [row.get(name, "") for row in rows.values()] for name in differing_settings(rows.values())}
    for name in ("accuracy", "loss"):
        frame[name] = html_table.rounded(frame[name].to_numpy(float))
    frame = pd.concat([frame, pd.DataFrame(shown, index=frame.index)], axis=1)
    frame.index.name = "run"
    return frame


def differing_settings(rows: Any) -> list[str]:
    """Names of settings of which rows have at least two values, at most `MOST`."""
    values: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items():
            if name not in COLUMNS and name != "problem" and not name.startswith((*OWN_COLUMN, *UNIMPORTANT)):
                values.setdefault(name, set()).add(value)
    return [name for name, different in values.items() if len(different) > 1][:MOST]


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row.get(name) for name in COLUMNS}


def _time(run: GrowingRun) -> str:
    """When the last round was committed, in local time; without one, when the run was begun."""
    about, state, _ = run.stamp()
    stamp = state or about
    return "" if stamp is None else f"{datetime.fromtimestamp(stamp.written / 1e9):%Y-%m-%d %H:%M:%S}"


def what_differs(runs: Sequence[GrowingRun]) -> str:
    """HTML of the settings in which groups of runs differ: a table with a column per group.

    Runs that differ in their seed only are one group. Settings that only some have, with one value, are folded away.

    Args:
        runs: Runs with a complete round.
    """
    grouped = groups(runs) if runs else {}
    tables = [settings(members[0], seed=False) for members in grouped.values()]
    names = [name for name in sorted(differing_names(tables), key=_rank) if not name.startswith(UNIMPORTANT)]
    if not names:
        return f"<p>The {len(runs)} selected runs differ in their seed only.</p>" if len(runs) > 1 else ""
    heads = [f"{palette.label(members[0].label)}, {_seeds(members)}" for members in grouped.values()]
    shared = [name for name in names if len({value_text(table[name]) for table in tables if name in table}) > 1]
    rest = [name for name in names if name not in shared]
    folded = html_table.folded("settings that only some methods have, or runs state", _html(heads, rest, tables))
    return _html(heads, shared, tables) + (folded if rest else "")


def _rank(name: str) -> tuple[bool, str]:
    """Order of settings: those of the method last."""
    return name.startswith("method"), name.partition(".")[0]


def _seeds(runs: Sequence[Run]) -> str:
    seeds = ", ".join("unknown" if run.seed is None else str(run.seed) for run in runs)
    return f"seed{'s' * (len(runs) > 1)} {seeds}"


def _html(heads: Sequence[str], names: Sequence[str], tables: Sequence[Mapping[str, Any]]) -> str:
    cells = [[value_text(table[name]) if name in table else ABSENT for table in tables] for name in names]
    rows = ([name, *texts] for name, texts in zip(names, cells, strict=True))
    return html_table.table(["setting", *heads], rows)
