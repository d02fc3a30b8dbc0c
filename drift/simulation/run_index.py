"""Index of the runs in a folder: a table in index.sqlite, rebuilt from the folders when it is lost.

The table remembers which folders were read in full. It is not trusted: a row counts only if settings and
headers in the folder agree with it. Opening the run checks all of its files again.

Runs that this package trained are read without importing torch (`drift.runs.run_summary`); those of other programs or
with code from outside, compressed ones, and all that are not as they should be are opened.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from drift.runs.run_names import find
from drift.runs.run_summary import RunSummary, summary
from drift.store import paths, round_headers
from drift.store.atomic_write import write_bytes
from drift.store.numpy_files import escaped, is_text
from landscape.results.parsed_text import json_table

if TYPE_CHECKING:
    from drift.runs.run import Run

__all__ = ["Row", "find", "index"]

Row = dict[str, Any]

_COLUMNS = "fedscape_2 (name TEXT PRIMARY KEY, stamp TEXT NOT NULL, content TEXT NOT NULL, digest TEXT NOT NULL)"
_SCHEMA = {("table", "fedscape_2", f"CREATE TABLE {_COLUMNS}"), ("index", "sqlite_autoindex_fedscape_2_1", None)}

LONGEST = 1 << 16
"""Bytes of a row, and of the schema, that are read."""

STEPS = 100_000
"""Limit of SQLite virtual machine steps per query; a lookup by key takes a few dozen."""


def index(runs: str | Path = "runs") -> list[Row]:
    """One row per run in the folder `runs`, by name.

    Folders that have not changed since the last call are read in part only: settings and last numbers. A damaged run
    has a row with `problem` and no numbers, and so has one whose name is not valid UTF-8, which the table cannot hold.
    Where the folder cannot be written, no table is stored and the rows are the same.

    Returns:
        Rows with name, folder, method, dataset, model, partition, seed, done and rounds (rounds on disk and in all),
        accuracy (last one, fraction), updated (UTC, ISO), problem.
    """
    folder = Path(runs)
    names = sorted(path.parent.name for path in folder.glob("*/run.json"))
    stored = dict(_read(folder / "index.sqlite", [name for name in names if is_text(name)]))
    rows, fresh = list[Row](), dict[str, tuple[str, str]]()
    for name in names:
        if not is_text(name):
            rows.append({"folder": str(folder / name), "name": escaped(name), "problem": NO_TEXT})
            continue
        stamp, row = _stamp(folder / name), _row(folder / name)
        if stored.get(name) != (stamp, json.dumps(row)):
            row = _row(folder / name, whole=True)
        rows.append({"folder": str(folder / name), **row})
        fresh[name] = stamp, json.dumps(row)
    if fresh != stored:
        _write(folder / "index.sqlite", fresh)
    return rows


NO_TEXT = "the name of its folder is not valid UTF-8; rename the folder"
"""Problem of a run that is listed without being read."""


def _row(folder: Path, *, whole: bool = False) -> Row:
    """The row of a run from its settings and headers; `whole`: after state and last round were read in full."""
    if (short := summary(folder, whole=whole)) is not None:
        return _summarised(short)
    from drift.runs.run import Run

    try:
        run = Run(folder)
        if whole and run.rounds():
            run.state()
            run.round(-1)
        return _columns(run)
    except (LookupError, ValueError, OSError, TypeError, AttributeError) as reason:  # a damaged run is listed too
        return {"name": folder.name, "problem": " ".join(str(reason).split())}


def _summarised(run: RunSummary) -> Row:
    return {
        "name": run.folder.name,
        "method": run.label,
        "dataset": run.data_name,
        "model": run.model,
        "partition": run.partition,
        "seed": run.seed,
        **_progress(run.folder, run.done, run.rounds),
    }


def _columns(run: Run) -> Row:
    from drift.config.external_run import UNKNOWN
    from drift.plugins import tables
    from drift.plugins.reserved_names import USER_TASK

    experiment = run.experiment
    return {
        "name": run.name,
        "method": run.label,
        "dataset": run.data_name,
        "model": UNKNOWN if experiment.task.model == USER_TASK else experiment.task.model,
        "partition": tables.name(experiment.clients.partition),
        "seed": run.seed,
        **_progress(run.folder, _complete(run.folder), experiment.rounds),
    }


def _progress(folder: Path, done: list[int], rounds: int) -> Row:
    return {
        "done": len(done),
        "rounds": rounds,
        "accuracy": _last_accuracy(folder, done),
        "updated": _updated(folder),
        "problem": None,
    }


def _complete(folder: Path) -> list[int]:
    """Numbers of the rounds before the commit point that the state's header states, ascending."""
    path = folder / paths.STATE
    if not path.exists():
        return []
    done = _header(folder, path)["about"].get("next")
    if not isinstance(done, int):
        raise ValueError(f"{path} states no next round")
    return [index for index in round_headers.round_numbers(folder) if index < done]


def _last_accuracy(folder: Path, indices: list[int]) -> float | None:
    for number in reversed(indices):
        accuracy: float | None = _header(folder, paths.round_path(folder, number))["accuracy"]
        if accuracy is not None:
            return accuracy
    return None


def _header(folder: Path, path: Path) -> dict[str, Any]:
    paths.require_inside(path, folder)
    try:
        with safe_open(path, framework="numpy") as file:
            about = json_table((file.metadata() or {}).get("about", "{}"))
            name = "metric.accuracy"
            accuracy = float(file.get_tensor(name)) if name in file.keys() else None  # noqa: SIM118 (no mapping)
        return {"about": about, "accuracy": accuracy}
    except (SafetensorError, TypeError) as reason:
        raise ValueError(f"{path} cannot be read ({reason})") from reason


def _updated(folder: Path) -> str:
    latest = max(path.stat().st_mtime for path in _files(folder))
    return datetime.fromtimestamp(latest, UTC).isoformat(timespec="seconds")


def _stamp(folder: Path) -> str:
    """Changes whenever a round is committed."""
    facts = [path.stat() for path in _files(folder)]
    return " ".join(f"{fact.st_mtime_ns} {fact.st_size}" for fact in facts)


def _files(folder: Path) -> list[Path]:
    return [path for name in ("run.json", paths.STATE) if (path := folder / name).exists()]


def _read(path: Path, names: list[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Stamps and rows of these runs; none where the table is lost, damaged, or anything but what `_write` writes."""
    if path.is_symlink() or not path.is_file():  # a link may lead to any database, and a pipe is waited for
        return
    try:
        address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as base:
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            base.execute("PRAGMA trusted_schema = OFF")
            if set(_query(base, "SELECT type, name, sql FROM sqlite_master LIMIT 3")) != _SCHEMA:
                return
            for name in names:
                query = "SELECT stamp, content, digest FROM fedscape_2 WHERE name = ? LIMIT 1"
                for stamp, content, digest in _query(base, query, name):
                    if digest == _digest(name, stamp, content):
                        yield name, (stamp, content)
    except (sqlite3.Error, TypeError, ValueError, OSError):
        return


def _query(base: sqlite3.Connection, query: str, *values: str) -> list[tuple[str, ...]]:
    """Rows of a query, which is aborted after `STEPS`."""
    base.set_progress_handler(lambda: 1, STEPS)
    return base.execute(query, values).fetchall()


def _write(path: Path, rows: Mapping[str, tuple[str, str]]) -> None:
    """Write a new table and put it in the old one's place; where that cannot be, the next call tries again."""
    texts = [(name, *row) for name, row in rows.items()]
    base = sqlite3.connect(":memory:")
    with closing(base), base:
        base.execute(f"CREATE TABLE {_COLUMNS}")
        base.executemany("INSERT INTO fedscape_2 VALUES (?, ?, ?, ?)", [(*text, _digest(*text)) for text in texts])
        base.commit()
        content = base.serialize()
    with suppress(OSError):
        write_bytes(path, content)


def _digest(*texts: str) -> str:
    """Digest by which rows altered on disk are detected and rebuilt."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
