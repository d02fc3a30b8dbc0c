"""fedscape figures list --paper, draw --paper: a paper's items, what can be drawn of them, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures.commands.opening import RunSource, inside_of
from figures.texts import console

if TYPE_CHECKING:
    from drift.runs.run import Run
    from figures.commands._draw_files import Outcome
    from figures.commands._draw_papers import PlannedItem

HEADS = {"item": "item", "figure": "figure", "shows": "shows", "claim": "claim", "cost": "cost"}


def item_rows(paper: str) -> list[dict[str, Any]]:
    """A paper's items in its order; JSON also has the commands that train their runs, quick and as in the paper."""
    from figures import gallery, papers

    return [
        {
            "item": item.item,
            "figure": item.figure,
            "shows": item.shows,
            "claim": item.claim,
            "cost": gallery.constant(item.figure, "COST"),
            "quick": [
                line
                for setting in item.settings
                if setting.quick
                for line in papers.commands(item, setting, quick=True)
            ],
            "commands": [line for setting in item.settings for line in papers.commands(item, setting, quick=False)],
        }
        for item in papers.load(paper).items
    ]


def opened_or_none(texts: Sequence[str], source: RunSource) -> list[Run]:
    """Runs by path or name; none where the only text is a folder without runs, which may be filled later."""
    folders = [path for path in map(Path, texts) if path.is_dir() and not inside_of(path)]
    if len(texts) == len(folders) == 1 and not any(folders[0].rglob("run.json")):
        return []
    return source.open_all(texts)


def draw_paper(
    paper: str, runs: Sequence[Run], items: Sequence[str], home: Path, folder: Path, json: bool = False, **look: Any
) -> int:
    """Draw the items of a paper whose runs exist, and print the commands for the others; 0, or 2 if nothing was drawn.

    A table is drawn from the cells that have runs, beside the numbers that the paper prints.

    Args:
        items: Names of items; all if empty.
        home: Folder that missing runs are to be trained into.
        folder: For the pictures.
        json: Whether to write what was drawn and what is missing as JSON.
        look: `formats` of the pictures and words of a look, as `figures.draw` takes them.
    """
    from figures.commands._draw_papers import planned
    from figures.selection.run_selection import join_names

    plan = planned(paper, runs, items)
    outcomes = {
        entry.item.item: _draw(entry, folder, look) if entry.runs else entry.lone_cell or "no runs" for entry in plan
    }
    needed = {run.folder for entry in plan for run in entry.runs}
    if others := [run.name for run in runs if run.folder not in needed]:
        why = "they belong to no item that is drawn, or other cells lack their seed"
        console.say(f"{len(others)} of {len(runs)} runs are not drawn, {why}: {join_names(others)}")
    commands: dict[tuple[str, ...], list[str]] = {}
    for entry in plan:
        outcome, verb = outcomes[entry.item.item], "are" if entry.item.item.startswith(("Figs", "Tables")) else "is"
        if isinstance(outcome, str):
            console.say(f"{entry.item.item} {verb} left out: {outcome}")
        elif entry.reservation:
            console.say(f"{entry.item.item} {verb} drawn {entry.reservation}")
        for path in () if json or isinstance(outcome, str) else outcome:
            console.put(str(path))
        if lines := tuple(entry.missing(home)):
            commands.setdefault(lines, []).append(entry.item.item)
    for lines, names in commands.items():
        console.say(f"for {', '.join(names)}:")
        for line in lines:
            console.say(f"  {line}")
    if commands:
        console.say(f"These are quick variants; the papers' settings: fedscape figures list --paper {paper} --json")
    if json:
        console.put_json([_to_dict(entry, outcomes[entry.item.item], home) for entry in plan])
    count = sum(not isinstance(outcome, str) for outcome in outcomes.values())
    console.say(f"{count} of {len(plan)} items drawn")
    return 0 if count else 2


def _to_dict(entry: PlannedItem, outcome: Outcome, home: Path) -> dict[str, Any]:
    refused = isinstance(outcome, str)
    about = {"item": entry.item.item, "figure": entry.item.figure, "files": [] if refused else outcome}
    return {**about, "left_out": outcome if refused else None, "missing": entry.missing(home)}


def _draw(entry: PlannedItem, folder: Path, look: Mapping[str, Any]) -> Outcome:
    """Files of an item, or why its runs do not allow it."""
    from figures.commands._draw_files import left_out, outcome_of
    from figures.gallery import constant

    name = entry.item.figure
    if any(run.folder.is_dir() for run in entry.runs):  # files are drawn at once, or refused
        count = f"{len(entry.runs)} run{'s' * (len(entry.runs) > 1)}"
        console.say(f"{entry.item.item}, {name}: {constant(name, 'COST')}, {count}")
    with console.stages(f"drawing {entry.item.item}") as stage:
        runs = [run.with_progress(stage, console.say) for run in entry.runs]
        outcome = outcome_of(name, runs, folder, {**entry.options, **look}, entry.stem)
    for line in () if isinstance(outcome, str) else left_out(outcome):
        console.say(f"{entry.item.item}: {line}")
    return outcome
