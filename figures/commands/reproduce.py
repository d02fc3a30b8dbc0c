"""fedscape reproduce: train what the papers' claims need, in order of value per hour."""

import builtins
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from figures.commands.options import Data, Json, Runs, Workers, flag, several
from figures.commands.requirements import require_folder
from figures.texts import console

COLUMNS = {
    "item": "item",
    "paper": "paper",
    "seeds": "seeds",
    "runs": "recorded",
    "hours": "core-hours left",
    "lacking": "no number for",
}


def reproduce(
    *,
    paper: Annotated[builtins.list[str] | None, several("--paper", "NAME")] = None,
    item: Annotated[builtins.list[str] | None, several("--item", "NAME")] = None,
    budget: str | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    list: Annotated[bool, flag("--list")] = False,
    plan: Path | None = None,
    files: Path = Path("docs/results/data"),
    runs: Runs = Path("runs"),
    data: Data = None,
    workers: Workers = 1,
    json: Json = False,
) -> int:
    """Train the runs that test the papers' claims, most useful first, and write one small file per finished run.

    A plan lists the runs with their core-hours and their value for the claims. Runs with the largest value per
    core-hour come first. All of them take days: --list shows them, --budget limits them. If you stop the command, give
    it again to resume, on any machine that has the files. A run is not trained again if its file has a number for each
    of its claims. A run that diverges is recorded up to that round. Exit code 2 if a run failed, or gives no results
    for its claims.

    Example: `fedscape reproduce --paper ima --budget 2h --workers 2`

    Args:
        budget: Core time after which no further round is trained: 2h, 90m, 30s. The measurements on a finished run
            are not counted; some take minutes. By default none.
        device: Where clients train; auto uses the GPU if its results agree with the CPU's.
        plan: TOML file of a plan of your own. By default that of fedscape.
        files: Folder of the small files with the numbers, one per finished run.
        paper: Only items of these papers (fedscape list papers). By default all of the plan.
        item: Only these items of the plan (--list names them). By default all.
        list: Show the items of the plan and the core-hours that are left; train nothing.
    """
    from drift.claims.campaign.plan import load
    from drift.config.shipped import plans

    selected, hours = load(plan or plans()["reproduction"]).of_items(paper or (), item or ()), _hours(budget)
    sets = selected.sets()
    from drift.claims.campaign.execute import Folders, execute, recorded

    have = recorded(sets, files)
    if list:
        console.table(rows(selected, have), COLUMNS, json=json)
        return 0
    require_folder(runs)
    require_folder(files)
    ended = []
    folders = Folders(runs, files, data)
    todo = [units for units in sets if not _recorded(units, have)]
    if lacking := sorted(set().union(*have.values())):
        console.say(f"files of {sum(map(bool, have.values()))} runs have no number for {', '.join(lacking)}.")
    if not todo:
        console.say(f"all {sum(map(len, sets))} runs of the plan are recorded in {files}.")
    for result in execute(todo, folders, hours=hours, workers=workers, device=device, report=console.say):
        ended.append(result)
        reason = f": {result.reason}" if result.reason else ""
        console.say(
            f"{result.unit.item.name}, {' '.join(result.unit.row.set)}, seed {result.unit.seed}: {result.state}{reason}"
        )
    if json:
        console.put_json([_to_dict(result) for result in ended])
    return 2 if any(result.state in ("failed", "incomplete") for result in ended) else 0


def _hours(text: str | None) -> float | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(h|m|s)", text.strip())
    if match is None or float(match[1]) == 0:
        raise ValueError(f"cannot read budget {text!r}; write a number with h, m or s, as in 2h, 90m or 30s.")
    return float(match[1]) * {"h": 1.0, "m": 1 / 60, "s": 1 / 3600}[match[2]]


def rows(plan: Any, have: dict[str, set[str]]) -> list[dict[str, Any]]:
    """What --list prints, a row per item."""
    table = []
    for item in plan.items:
        units = [unit for units in item.units for unit in units]
        remaining = [unit for unit in units if not _recorded([unit], have)]
        table.append(
            {
                "item": item.name,
                "paper": f"{item.paper} {item.item}",
                "seeds": len(item.units),
                "runs": f"{len(units) - len(remaining)} of {len(units)}",
                "hours": round(sum(unit.row.minutes for unit in remaining) / 60, 1),
                "lacking": ", ".join(sorted(set().union(*(have.get(unit.identity, ()) for unit in units)))),
            }
        )
    return table


def _recorded(units: Any, have: dict[str, set[str]]) -> bool:
    """Whether each run has a file with a number for every claim of its item."""
    return all(unit.identity in have and not have[unit.identity] for unit in units)


def _to_dict(result: Any) -> dict[str, Any]:
    return {
        "item": result.unit.item.name,
        "settings": [*result.unit.row.set],
        "seed": result.unit.seed,
        "state": result.state,
        "reason": result.reason,
    }
