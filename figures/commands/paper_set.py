"""fedscape figures list --paper, draw --paper: a paper's items, what can be drawn of them, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import console
from figures.commands.opening import opened_all

if TYPE_CHECKING:
    from drift.runs.run import Run
    from figures.commands._draw_files import Outcome
    from figures.commands._draw_papers import Planned

HEADS = {"item": "item", "figure": "figure", "shows": "shows", "claim": "claim", "cost": "cost"}


def items(paper: str) -> list[dict[str, Any]]:
    """A paper's items in its order; JSON also has the commands that train their runs, quick and as in the paper."""
    from figures import gallery, papers

    return [
        {
            "item": item.item,
            "figure": item.figure,
            "shows": item.shows,
            "claim": item.claim,
            "cost": gallery.constant(item.figure, "COST"),
            "quick": [line for one in item.settings if one.quick for line in papers.commands(item, one, quick=True)],
            "commands": [line for one in item.settings for line in papers.commands(item, one, quick=False)],
        }
        for item in papers.load(paper).items
    ]


def opened_or_none(texts: Sequence[str], runs: Path, data: Path | None, task: str | None) -> list[Run]:
    """Runs by path or name; none where the only text is a folder without runs, which may be filled later."""
    if len(texts) == 1 and Path(texts[0]).is_dir() and not any(Path(texts[0]).rglob("run.json")):
        return []
    return opened_all(texts, runs, data, task)


def draw_paper(
    paper: str, runs: Sequence[Run], chosen: Sequence[str], home: Path, folder: Path, json: bool = False
) -> int:
    """Draw what can be drawn of a paper, and say for the rest what is missing; 0, or 2 if nothing was drawn.

    Args:
        chosen: Items; all where none is given.
        home: Folder that missing runs are to be trained into.
        folder: For the pictures.
        json: Whether to write what was drawn and what is missing as JSON.
    """
    from figures.commands._draw_papers import planned
    from figures.selection.run_selection import join_names

    plan = planned(paper, runs, chosen)
    outcomes = {one.item.item: _draw(one, folder) if one.runs else "no runs" for one in plan}
    needed = {run.folder for one in plan for run in one.runs}
    if others := [run.name for run in runs if run.folder not in needed]:
        console.say(f"{len(others)} of {len(runs)} runs belong to no item that is drawn: {join_names(others)}")
    left: dict[tuple[str, ...], list[str]] = {}
    for one in plan:
        outcome = outcomes[one.item.item]
        if isinstance(outcome, str):
            console.say(f"{one.item.item} is left out: {outcome}")
        for path in () if json or isinstance(outcome, str) else outcome:
            console.put(str(path))
        if lines := tuple(one.missing(home)):
            left.setdefault(lines, []).append(one.item.item)
    for lines, names in left.items():
        console.say(f"for {', '.join(names)}:")
        for line in lines:
            console.say(f"  {line}")
    if left:
        console.say(f"These are quick variants; the papers' settings: fedscape figures list --paper {paper} --json")
    if json:
        console.put_json([_told(one, outcomes[one.item.item], home) for one in plan])
    drawn = sum(not isinstance(outcome, str) for outcome in outcomes.values())
    console.say(f"{drawn} of {len(plan)} items drawn")
    return 0 if drawn else 2


def _told(one: Planned, outcome: Outcome, home: Path) -> dict[str, Any]:
    left = isinstance(outcome, str)
    about = {"item": one.item.item, "figure": one.item.figure, "files": [] if left else outcome}
    return {**about, "left_out": outcome if left else None, "missing": one.missing(home)}


def _draw(one: Planned, folder: Path) -> Outcome:
    """Files of an item, or why its runs do not allow it."""
    from figures.commands._draw_files import draw_one, left_out
    from figures.gallery import AnyOf, constant

    name = one.item.figure
    console.say(f"{one.item.item}, {name}: {constant(name, 'COST')}, {len(one.runs)} run{'s' * (len(one.runs) > 1)}")
    try:
        with console.parts(f"drawing {one.item.item}") as part:
            heard = AnyOf(run.with_progress(part, console.say) for run in one.runs)
            paths = draw_one(name, heard, folder, stem=one.stem, **one.options)
        for line in left_out(paths):
            console.say(f"{one.item.item}: {line}")
        return paths
    except (ValueError, LookupError) as reason:
        if isinstance(reason, KeyError | IndexError):
            raise
        return " ".join(str(reason).split())
