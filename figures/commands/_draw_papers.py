"""Items of a paper from a folder of runs; those whose runs are missing, with the commands that train them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import gallery
from figures.papers.catalogue import Item, load
from figures.papers.needed import SettingRuns, commands, match_runs

if TYPE_CHECKING:
    from drift.runs.run import Run


@dataclass(frozen=True)
class Planned:
    """An item of a paper and what a folder holds of it.

    Args:
        paper: Short name.
        item: The item.
        parts: One for each of its settings.
    """

    paper: str
    item: Item
    parts: tuple[SettingRuns, ...]

    @property
    def runs(self) -> list[Run]:
        """Runs of the settings that are whole, each once."""
        by_folder = {str(run.folder): run for part in self.parts if part.whole for run in part.runs}
        return list(by_folder.values())

    @property
    def stem(self) -> str:
        """Beginning of its files' names: paper, item and figure."""
        return f"{self.paper}-{self.item.slug}-{self.item.figure.replace('_', '-')}"

    @property
    def options(self) -> dict[str, Any]:
        """Options of the figure; one that takes a paper and an item also shows the numbers printed there."""
        accepted = inspect.signature(gallery.load(self.item.figure).data).parameters
        origin = {"paper": self.paper, "item": self.item.item}
        quick = self.item.quick_options if any(part.whole and part.quick for part in self.parts) else {}
        return {**self.item.options, **quick, **{name: value for name, value in origin.items() if name in accepted}}

    def missing(self, runs: str | Path) -> list[str]:
        """Commands that train what is not there, in the quick variant where there is one."""
        return [
            line
            for part in self.parts
            if not part.whole
            for line in commands(self.item, part.setting, quick=part.setting.quick is not None, runs=runs)
        ]


def planned(paper: str, runs: Sequence[Run], items: Sequence[str] = ()) -> list[Planned]:
    """The items of a paper, with the runs that each can be drawn from.

    Args:
        items: Only these, like "Fig. 6a"; all where none is given.

    Raises:
        ValueError: If there is no such paper or item.
    """
    catalogue = load(paper)
    selected = [catalogue.item(name) for name in items] or catalogue.items
    return [Planned(paper, item, tuple(match_runs(item, runs))) for item in selected]
