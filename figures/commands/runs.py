"""fedscape runs, show, verify."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from figures.commands.opening import RunSource
from figures.commands.options import Data, Json, RunName, RunNames, Runs, flag, several
from figures.texts import console
from landscape.plugins.unknown_names import unknown
from landscape.results.parsed_text import dotted

if TYPE_CHECKING:
    from drift.runs.run_summary import RunSummary

COLUMNS = {
    name: name
    for name in ["name", "method", "dataset", "model", "partition", "seed", "progress", "accuracy", "updated"]
}
COLUMNS |= {"name": "run", "progress": "rounds", "updated": "updated (UTC)"}


def runs(
    folder: list[Path] | None = None,
    /,
    *,
    where: Annotated[list[str] | None, several("--where", "COLUMN=VALUE")] = None,
    sort: Annotated[str | None, Parameter(metavar="COLUMN")] = None,
    descending: Annotated[bool, flag("--descending")] = False,
    runs: Runs = Path("runs"),
    json: Json = False,
) -> None:
    """List the runs in folders: method, data, rounds done, accuracy (fraction 0-1).

    The code of your own plug-ins is not needed. In --where, * stands for any text, and a run must match all columns.
    With --sort, runs without a value come last.

    Example: `fedscape runs out/demo/runs --where method=fedavg --sort accuracy --descending`

    Args:
        folder: Folders of runs, or single runs. By default --runs.
        where: List only these runs: --where method=fedavg 'dataset=cifar*'. By default all.
        sort: Order by a column or number, such as loss. By default by name.
        descending: Show the largest value first.
    """
    from drift.runs.metric_names import stated

    if runs != Path("runs") and not runs.is_dir():
        raise LookupError(f"there is no folder {runs}; name the folder that holds the runs by --runs DIR.")
    if descending and sort is None:
        raise ValueError("--descending is given without --sort; add --sort COLUMN.")
    rows = [row for source in folder or [runs] for row in _rows(source, runs)]
    rows = list({Path(row["folder"]).resolve(): row for row in rows}.values())
    names = {name for row in rows for name in row.get("metrics", ())}
    if names and (unrecorded := {*stated().values()} - names):
        raise LookupError(unknown("number", min(unrecorded), sorted(names)))
    wanted = [_condition(text, names) for text in where or ()]
    value = lambda row, column: row.get(column, row.get("metrics", {}).get(column))  # noqa: E731
    if wanted:
        fits = lambda row: all(fnmatchcase(str(value(row, column)), text) for column, text in wanted)  # noqa: E731
        rows = [row for row in rows if not row.get("problem") and fits(row)]
    if sort is not None:
        column = _column(sort, names)
        known = [row for row in rows if (number := value(row, column)) is not None and number == number]
        rest = [row for row in rows if (number := value(row, column)) is None or number != number]
        rows = sorted(known, key=lambda row: value(row, column), reverse=descending) + rest
    if json:
        console.put_json(rows)
        return
    intact, damaged = ([row for row in rows if bool(row.get("problem")) is odd] for odd in (False, True))
    readable = [{**row["metrics"], **row, "progress": f"{row['done']}/{row['rounds']}"} for row in intact]
    empty = f"no runs in {runs}; train one by fedscape train, or name another folder by --runs DIR."
    empty = f"no run with {' and '.join(where)}." if where else empty
    columns = COLUMNS | ({sort: sort} if sort is not None and sort in names else {})
    console.table(readable, columns, empty="" if rows else empty)
    for row in damaged:
        console.say(console.as_text(f"{row['name']} cannot be read: {row['problem']}"))


LISTED = ("name", "method", "dataset", "model", "partition", "seed", "done", "rounds", "accuracy", "updated")
"""Columns that --where and --sort take, beside the numbers that runs have."""


def _column(name: str, numbers: set[str]) -> str:
    if name not in LISTED and name not in numbers:
        raise ValueError(unknown("column", name, [*LISTED, *sorted(numbers - {*LISTED})]))
    return name


def _condition(text: str, numbers: set[str]) -> tuple[str, str]:
    """Column and value of COLUMN=VALUE."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"cannot read {text!r}; write COLUMN=VALUE, as in method=fedavg.")
    return _column(name.strip(), numbers), value.strip()


def _rows(source: Path, runs: Path) -> list[dict[str, Any]]:
    """Rows of a folder of runs, or of one run.

    Raises:
        LookupError: If there is no such folder or run.
    """
    from drift.runs.run_names import find
    from drift.simulation.run_index import index

    if source == runs or (source.is_dir() and not (source / "run.json").exists()):
        return index(source)
    run = find(runs, str(source))
    return [row for row in index(run.absolute().parent) if row["name"] == run.absolute().name]


def show(run: RunName, /, *, runs: Runs = Path("runs"), json: Json = False) -> None:
    """Show a run: settings, rounds, which models are stored, results of the last round.

    Example: `fedscape show fedavg-digits`
    """
    from drift.runs.run_names import find
    from drift.runs.run_summary import opened_summary, summary

    stored = summary(find(runs, run), check=True) or opened_summary(RunSource(runs).open(run))
    described = {**_described(stored), "batch statistics": _odd_statistics(stored, run, runs)}
    if json:
        console.put_json(described)
        return
    console.pairs(_stated({key: value for key, value in described.items() if key not in ("experiment", "metrics")}))
    console.put("\nsettings")
    console.pairs(_stated(described["experiment"]))
    console.put("\nlast round")
    console.pairs(described["metrics"])


def verify(
    run: RunNames,
    /,
    *,
    repair: Annotated[bool, flag("--repair")] = False,
    runs: Runs = Path("runs"),
    data: Data = None,
    json: Json = False,
) -> int:
    """Read every file of runs and name those that are damaged, missing or of another run; exit code 2 if there are.

    With --repair, fedscape removes damaged results and left-overs of stopped writes. It trains lost rounds again from
    the round before them if that gives the same bits. It never deletes intact files. Exit code 2 if damage remains.

    Example: `fedscape verify fedavg-digits --repair`

    Args:
        repair: Remove or recompute damaged files, and name them.
    """
    from drift.runs.run_names import find

    folders = list(dict.fromkeys(folder for text in run for folder in _run_folders(Path(text)) or [find(runs, text)]))
    from drift.simulation.repair import repair as repaired
    from drift.simulation.verify import verify as problems_of
    from drift.store.round_headers import uncommitted

    status, listed = 0, []
    for folder in folders:
        with console.progress(f"{'repairing' if repair else 'reading'} {folder.name}"):
            entries = repaired(folder, data=data) if repair else problems_of(folder)
        damaged = [entry for entry in entries if not getattr(entry, "done", False)]
        status = 2 if damaged else status
        listed += [{"run": str(folder), **vars(entry)} for entry in entries]
        for entry in () if json else entries:
            prefix = f"{folder}: " if len(folders) > 1 else ""
            console.put(console.as_text(f"{prefix}{entry}{' Not repaired.' if repair and entry in damaged else ''}"))
        if not entries and not json:
            console.put(f"{folder}: every file is whole{uncommitted(folder)}.")
    if json:
        console.put_json(listed)
    return status


def _run_folders(source: Path) -> list[Path]:
    """A folder itself, or the runs in a folder of runs, also those whose run.json is lost; none if it is no folder."""
    names = ("run.json", "rounds", "state.safetensors")
    if not source.is_dir() or any((source / name).exists() for name in names):
        return [source] if source.is_dir() else []
    return sorted({path.parent for name in names for path in source.glob(f"*/{name}")}) or [source]


def _described(run: RunSummary) -> dict[str, Any]:
    from drift.store.number_ranges import spans

    size = sum(path.stat().st_size for path in run.folder.rglob("*") if path.is_file())
    return {
        "name": run.folder.name,
        "folder": str(run.folder),
        "rounds": f"{len(run.done)} of {run.rounds}",
        "stopped": run.about.get("stopped"),
        "clients kept in rounds": spans(run.clients),
        "global models kept in rounds": spans(run.globals),
        "size": f"{size / 1e6:.1f} MB",
        "results": sorted(path.stem for path in (run.folder / "results").glob("[!.]*.nc")),
        "engine": _with_reason(run.about, "engine"),
        "device": _with_reason(run.about, "device"),
        "method": run.label,
        "data": run.data_name,
        "partition": run.partition,
        "seed": run.seed,
        "told": run.about.get("told"),
        "not known": run.about.get("unknown"),
        "versions": run.about["versions"],
        "experiment": _settings(run),
        "metrics": dict(sorted(run.metrics.items())),
    }


def _odd_statistics(stored: RunSummary, run: str, runs: Path) -> str | None:
    """What is odd about the batch statistics of the last global model; no run without any is opened."""
    from drift.store.round_headers import has_buffers

    if not stored.globals or not has_buffers(stored.folder, stored.globals[-1]):
        return None
    from drift.analyses.rounds.batch_statistics import statistics_remark

    return statistics_remark(RunSource(runs).open(run)) or None


def _settings(run: RunSummary) -> dict[str, Any]:
    """The settings; of a run of another program with what is known in place of defaults."""
    settings = dict(run.about["experiment"])
    if run.about.get("imported"):
        settings["clients"] = {**settings["clients"], "partition": {"name": run.partition}}
        settings["task"] = {**settings["task"], "dataset": run.data_name, "model": run.model}
    return settings


def _with_reason(about: Mapping[str, Any], what: str) -> str | None:
    """An engine or a device, and why it was taken; nothing where the run does not say."""
    reason = about.get(f"{what}_reason")
    return f"{about[what]} ({reason})" if reason else about.get(what)


def _stated(content: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings as dotted keys; what is absent is left out."""
    return {key: value for key, value in dotted(content).items() if value is not None and value != []}
