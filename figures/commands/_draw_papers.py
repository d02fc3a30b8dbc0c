"""Items of a paper from a folder of runs; those whose runs are missing, with the commands that train them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import gallery, papers
from figures.papers.catalogue import Item, load
from figures.papers.needed import SettingRuns, commands, match_runs, stand_ins

if TYPE_CHECKING:
    from drift.runs.run import Run


@dataclass(frozen=True)
class PlannedItem:
    """An item of a paper and what a folder holds of it.

    Args:
        paper: Short name.
        item: The item.
        settings: One for each of its settings.
        stand_ins: Runs of the settings of `Item.measured`, drawn where no setting is whole.
    """

    paper: str
    item: Item
    settings: tuple[SettingRuns, ...]
    stand_ins: tuple[Run, ...] = ()

    @property
    def runs(self) -> list[Run]:
        """Paired runs of the settings that are whole; in tables, whose cells stand alone, all runs; or stand-ins."""
        cells = self._in_cells
        if self.lone_cell:
            return [*self.stand_ins]
        shown = [setting.runs if cells else setting.paired for setting in self.settings if setting.complete or cells]
        return list({str(run.folder): run for runs in shown for run in runs}.values()) or [*self.stand_ins]

    @property
    def reservation(self) -> str:
        """How it is drawn, where not of all runs: of some cells of a table, or in another setting; else empty."""
        setting = papers.reservation(self.item, self.runs)
        matching, missing = self._combinations
        if self._in_cells and missing and self.runs != list(self.stand_ins):
            return "; ".join(filter(None, [f"in part: {matching} of {matching + missing} cells have runs", setting]))
        return setting

    @property
    def lone_cell(self) -> str:
        """Why a table is not drawn: a single one of its cells has runs; else empty."""
        matching, missing = self._combinations
        lone = self._in_cells and matching == 1 and missing > 0
        return f"1 of {1 + missing} cells has runs, which compares nothing" if lone else ""

    @property
    def stem(self) -> str:
        """Beginning of its files' names: paper, item and figure."""
        return f"{self.paper}-{self.item.slug}-{self.item.figure.replace('_', '-')}"

    @property
    def options(self) -> dict[str, Any]:
        """Options of the figure; one that takes a paper and an item also shows the numbers printed there."""
        origin = {"paper": self.paper, "item": self.item.item} if self._in_cells else {}
        pictures_drawn = [setting for setting in self.settings if setting.complete or (self._in_cells and setting.runs)]
        quick = self.item.quick_options if any(setting.quick for setting in pictures_drawn) else {}
        other = self.item.measured_options if self.runs == list(self.stand_ins) else {}
        return {**self.item.options, **quick, **other, **origin}

    def missing(self, runs: str | Path) -> list[str]:
        """Commands that train what is not there, in the quick variant where there is one."""
        return [
            line
            for setting in self.settings
            if not setting.complete
            for line in commands(self.item, setting.setting, quick=setting.quick or not setting.runs, runs=runs)
        ]

    @property
    def _combinations(self) -> tuple[int, int]:
        """Number of combinations of settings with runs and without."""
        return sum(setting.matching for setting in self.settings), sum(setting.missing for setting in self.settings)

    @property
    def _in_cells(self) -> bool:
        """Whether the figure is a table with the paper's numbers beside its own."""
        return {"paper", "item"} <= inspect.signature(gallery.load(self.item.figure).data).parameters.keys()


def planned(paper: str, runs: Sequence[Run], items: Sequence[str] = ()) -> list[PlannedItem]:
    """The items of a paper, with the runs that each can be drawn from.

    Args:
        items: Only these, like "Fig. 6a"; all where none is given.

    Raises:
        ValueError: If there is no such paper or item.
    """
    catalogue = load(paper)
    selected = [catalogue.item(name) for name in items] or catalogue.items
    return [PlannedItem(paper, item, tuple(match_runs(item, runs)), stand_ins(item, runs)) for item in selected]
