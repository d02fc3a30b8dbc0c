"""fedscape runs, show, verify."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from figures import console
from figures.commands.opening import opened
from figures.commands.options import Data, Json, RunName, Runs, flag

if TYPE_CHECKING:
    from drift.runs.run_summary import RunSummary

COLUMNS = {
    "name": "run",
    "method": "method",
    "dataset": "dataset",
    "model": "model",
    "partition": "partition",
    "seed": "seed",
    "progress": "rounds",
    "accuracy": "accuracy",
    "updated": "updated (UTC)",
}


def runs(*, runs: Runs = Path("runs"), json: Json = False) -> None:
    """List the runs in a folder: method, data, rounds done, accuracy (fraction 0-1).

    Example: `fedscape runs --runs out/demo/runs`
    """
    if runs != Path("runs") and not runs.is_dir():
        raise LookupError(f"there is no folder {runs}; name the folder that holds the runs by --runs DIR.")
    from drift.simulation.run_index import index

    rows = index(runs)
    if json:
        console.put_json(rows)
        return
    readable = [{**row, "progress": f"{row['done']}/{row['rounds']}"} for row in rows if not row.get("problem")]
    empty = f"no runs in {runs}; train one by fedscape train, or name another folder by --runs DIR."
    console.table(readable, COLUMNS, empty="" if rows else empty)
    for row in rows:
        if row.get("problem"):
            console.say(console.as_text(f"{row['name']} cannot be read: {row['problem']}"))


def show(run: RunName, /, *, runs: Runs = Path("runs"), json: Json = False) -> None:
    """Show a run: settings, rounds, which models are stored, results of the last round.

    Example: `fedscape show fedavg-digits`
    """
    from drift.runs.run_names import find
    from drift.runs.run_summary import opened_summary, summary

    folder = find(runs, run)
    described = _described(summary(folder, whole=True) or opened_summary(opened(run, runs, None)))
    if json:
        console.put_json(described)
        return
    console.pairs(_flat({key: value for key, value in described.items() if key not in ("experiment", "metrics")}))
    console.put("\nsettings")
    console.pairs(_flat(described["experiment"]))
    console.put("\nlast round")
    console.pairs(described["metrics"])


def verify(
    run: RunName,
    /,
    *,
    repair: Annotated[bool, flag("--repair", "Remove or recompute what is damaged, and name it.")] = False,
    runs: Runs = Path("runs"),
    data: Data = None,
    json: Json = False,
) -> int:
    """Read every file of a run and name what is damaged, missing or not part of it; exit code 2 if anything is.

    With --repair, damaged results and left-overs of stopped writes are removed, and lost rounds are trained again from
    the round before them where that gives the same bits. Nothing whole is deleted; exit code 2 if anything stays
    damaged.

    Example: `fedscape verify fedavg-digits --repair`
    """
    from drift.runs.run_names import find

    folder = Path(run) if Path(run).is_dir() else find(runs, run)
    from drift.simulation.repair import repair as repaired
    from drift.simulation.verify import verify as problems_of

    with console.progress(f"{'repairing' if repair else 'reading'} {folder.name}"):
        entries = repaired(folder, data=data) if repair else problems_of(folder)
    damaged = [entry for entry in entries if not getattr(entry, "done", False)]
    if json:
        console.put_json([vars(entry) for entry in entries])
        return 2 if damaged else 0
    for entry in entries:
        console.put(console.as_text(f"{entry}{' Not repaired.' if repair and entry in damaged else ''}"))
    if not entries:
        console.put(f"{folder}: every file is whole.")
    return 2 if damaged else 0


def _described(run: RunSummary) -> dict[str, Any]:
    from drift.store.number_ranges import spans

    size = sum(path.stat().st_size for path in run.folder.rglob("*") if path.is_file())
    return {
        "name": run.folder.name,
        "folder": str(run.folder),
        "rounds": f"{len(run.done)} of {run.rounds}",
        "clients kept in rounds": spans(run.clients),
        "global models kept in rounds": spans(run.globals),
        "size": f"{size / 1e6:.1f} MB",
        "results": sorted(path.stem for path in (run.folder / "results").glob("[!.]*.zarr")),
        "engine": _with_reason(run.about, "engine"),
        "device": _with_reason(run.about, "device"),
        "method": run.label,
        "data": run.data_name,
        "partition": run.partition,
        "seed": run.seed,
        "told": run.about.get("told"),
        "not known": run.about.get("unknown"),
        "versions": run.about["versions"],
        "experiment": run.about["experiment"],
        "metrics": dict(sorted(run.metrics.items())),
    }


def _with_reason(about: Mapping[str, Any], what: str) -> str | None:
    """An engine or a device, and why it was taken; nothing where the run does not say."""
    reason = about.get(f"{what}_reason")
    return f"{about[what]} ({reason})" if reason else about.get(what)


def _flat(content: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as dotted keys; what is absent is left out."""
    flat: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        elif value is not None and value != []:
            flat[f"{prefix}{key}"] = value
    return flat
