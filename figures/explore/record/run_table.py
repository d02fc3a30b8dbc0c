"""The table of runs on the page: sorted, filtered, grouped; ticks select runs, a click on a row looks at one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd
import panel as pn

from figures.explore.record.run_rows import COLUMNS, run_row, table
from figures.explore.shell import html_table
from figures.explore.shell.latest import Latest

if TYPE_CHECKING:
    from figures.explore.shell.view import View
    from figures.explore.work.open_runs import OpenRuns

GROUPS = {"nothing": "", "method": "method", "data": "data", "partition": "partition", "seed": "seed"}
"""By what rows can be grouped, beside the settings that are columns."""

NUMBERS = ("seed", "done", "rounds", "accuracy", "loss")


class RunTable:
    """The table, its pickers, and a line for runs that cannot be read.

    Args:
        view: The view that it is part of.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self._latest = Latest(view)
        self._rows: dict[str, dict[str, Any]] = {}
        self._stamps: dict[str, object] = {}
        self.group = view.picker("runs.group", "group by", GROUPS, width=160)
        shown = lambda: [] if self.grid is None else list(self.grid.current_view.index)  # noqa: E731
        self.every = view.button("select all shown", lambda _: self._select(shown()))
        self.none = view.button("only the first", lambda _: self._select(view.selection.runs[:1]))
        self.grid: pn.widgets.Tabulator | None = None
        self._slot = pn.Column(sizing_mode="stretch_width")
        row = pn.Row(self.group, self.every, self.none, css_classes=["pickers"])
        self.problems = html_table.pane("problems")
        self.panel = pn.Column(row, self._slot, self.problems, sizing_mode="stretch_width")

    def update(self) -> None:
        """Read the rows of runs that changed, then show all."""
        runs: OpenRuns = self.view.explorer.runs
        self._show_selection()
        self._latest.ask(lambda: changed_rows(runs, dict(self._stamps)), self._show)

    def _show(self, fresh: dict[str, tuple[object, dict[str, Any]]]) -> None:
        self._stamps |= {name: stamp for name, (stamp, _) in fresh.items()}
        self._rows |= {name: {**self._rows.get(name, {}), **row} for name, (_, row) in fresh.items()}
        self.problems.object = html_table.lines(_problems(self._rows))
        if not fresh:
            return
        first = [name for name in self.view.selection.runs if name in self._rows] if self.grid is None else []
        self._rows = {name: self._rows[name] for name in dict.fromkeys([*first, *self._rows])}
        frame = table(self._rows)
        grid = self.grid
        with self.view.quietly():
            if grid is not None and all(map(pd.Index.equals, grid.value.axes, frame.axes)):
                self._patch(grid, frame, list(fresh))
            else:
                self._lay(frame)
        self._show_selection()

    def _patch(self, grid: pn.widgets.Tabulator, frame: pd.DataFrame, names: list[str]) -> None:
        """Change the cells that changed, so that order, filters and place stay."""
        before = grid.value
        rows = {name: row for row, name in enumerate(frame.index)}
        patch = {
            column: [(rows[name], _plain(frame.loc[name, column])) for name in names]
            for column in frame.columns
            if any(_differs(before.loc[name, column], frame.loc[name, column]) for name in names)
        }
        if patch:
            grid.patch(patch, as_index=False)

    def _new_grid(self, frame: pd.DataFrame, **state: Any) -> pn.widgets.Tabulator:
        """A table of these columns for good: the page cannot change those of a table that it is still making."""
        look: dict[str, Any] = {"selectable": "checkbox", "show_index": True, "disabled": True, "theme": "simple"}
        look |= {"layout": "fit_data_fill", "sizing_mode": "stretch_width", "css_classes": ["run-table"]}
        grid = pn.widgets.Tabulator(
            frame,
            titles={**COLUMNS, **{name: name.rpartition(".")[2].replace("_", " ") for name in frame.columns[9:]}},
            header_filters=_filters(frame),
            header_tooltips={name: name for name in frame.columns[9:]},
            formatters={name: html_table.as_written() for name in ("accuracy", "loss")},
            text_align=dict.fromkeys(NUMBERS, "right"),
            height=min(330, 96 + 30 * max(1, len(frame))),
            **look,
            **state,
        )
        grid.param.watch(self._ticked, "selection")
        grid.on_click(lambda event: self._clicked(str(grid.value.index[event.row])))
        return grid

    def _lay(self, frame: pd.DataFrame) -> None:
        """Make the table of other rows, with the order and the filters of the one before."""
        state: dict[str, Any] = {}
        if self.grid is not None:
            filters = [{"field": item["field"], "value": item["value"]} for item in self.grid.filters]
            state = {"sorters": self.grid.sorters, "configuration": {"initialHeaderFilter": filters}}
        self.grid = self._new_grid(frame, **state)
        self._slot[:] = [self.grid]
        self.group.options = GROUPS | {name: name for name in frame.columns[9:]}

    def _show_selection(self) -> None:
        """Tick the selected runs, and group as the address says."""
        if self.grid is None:
            return
        rows = {name: row for row, name in enumerate(self.grid.value.index)}
        wanted = sorted(rows[name] for name in self.view.selection.runs if name in rows)
        group = self.view.selection.look("runs.group")
        with self.view.quietly():
            if sorted(self.grid.selection) != wanted:
                self.grid.selection = wanted[::-1]  # the page scrolls to the last of them
            known = group if group in self.grid.value.columns else ""
            if self.grid.groupby != ([known] if known else []):
                self.grid.groupby = [known] if known else []
            self.group.value = known

    def _ticked(self, event: Any) -> None:
        self._select([str(event.obj.value.index[row]) for row in event.new])

    def _select(self, names: list[str]) -> None:
        """Select runs; the one that is looked at in detail stays first where it is among them."""
        first = self.view.selection.run
        self.view.pick(runs=[first, *(n for n in names if n != first)] if first in names else names)

    def _clicked(self, name: str) -> None:
        self.view.selection.change(runs=[name, *(other for other in self.view.selection.runs if other != name)])


def changed_rows(runs: OpenRuns, stamps: dict[str, object]) -> dict[str, tuple[object, dict[str, Any]]]:
    """Stamp and row of the runs whose folder changed since the stamps were taken; for a thread."""
    rows: dict[str, tuple[object, dict[str, Any]]] = {}
    for name in runs.names:
        stamp = runs.described(name).stamp()[:2], runs.problem(name)
        if stamps.get(name) != stamp:
            rows[name] = stamp, run_row(runs, name)
    return rows


def _problems(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line per run that cannot be read, the first few."""
    lines = [f"{name}: {row['problem']}" for name, row in rows.items() if row.get("problem")]
    rest = len(lines) - LINES
    return [*lines[:LINES], *([f"and {rest} more runs that cannot be read"] if rest > 0 else [])]


LINES = 4
"""Runs that cannot be read and are named below the table."""


def _filters(frame: pd.DataFrame) -> dict[str, Any]:
    text = {"type": "input", "func": "like", "placeholder": "has"}
    least = {"type": "number", "func": ">=", "placeholder": "\u2265"}
    any_of = {"type": "list", "valuesLookup": True, "clearable": True, "placeholder": "any"}
    listed = dict.fromkeys(("method", "data", "partition", *frame.columns[9:]), any_of)
    return {"run": text, "updated": text, **dict.fromkeys(NUMBERS, least), **listed}


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _differs(value: Any, other: Any) -> bool:
    return value != other and not (value != value and other != other)
