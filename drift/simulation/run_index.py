"""Index of the runs in a folder: a table in index.sqlite, rebuilt from the folders when it is lost.

A row counts only if this user wrote it on this machine, as its digest with the user's secret proves, if the names that
settings use are the same, and if none of the run's files that it was read from has changed since; other rows are read
again from the folder. Opening the run checks all of its files again.

Runs that this package trained are read without importing torch (`drift.runs.run_summary`); those of other programs or
with code from outside, compressed ones, and all that are not as they should be are opened.
"""

from __future__ import annotations

import hmac
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import drift.methods
from drift.runs.run_names import find
from drift.runs.run_summary import PACKAGES, RunSummary, summary
from drift.store import paths, round_headers
from drift.store.atomic_write import write_bytes
from drift.store.numpy_files import escaped, is_text
from landscape import plugins
from landscape.results.user_folder import secret

if TYPE_CHECKING:
    from drift.runs.run import Run

__all__ = ["Row", "find", "index"]

Row = dict[str, Any]

_COLUMNS = "fedscape_2 (name TEXT PRIMARY KEY, stamp TEXT NOT NULL, content TEXT NOT NULL, digest TEXT NOT NULL)"
_SCHEMA = {("table", "fedscape_2", f"CREATE TABLE {_COLUMNS}"), ("index", "sqlite_autoindex_fedscape_2_1", None)}

LONGEST = 1 << 16
"""Bytes of a row, and of the schema, that are read."""

STEPS = 1_000
"""Limit of SQLite virtual machine steps per row; one takes a dozen."""

SPARE = 100
"""Rows that are read beyond the number of runs: of runs that were deleted."""


def index(runs: str | Path = "runs") -> list[Row]:
    """One row per run in the folder `runs`, by name.

    Folders that have not changed since the last call are not read. A damaged run has a row with `problem` and no
    numbers, and so has one whose name is not valid UTF-8, which the table cannot hold. Where the folder or the user's
    cache cannot be written, no row is remembered and the rows are the same.

    Returns:
        Rows with name, folder, method, dataset, model, partition, seed, done and rounds (rounds on disk and in all),
        accuracy (last one, fraction), updated (UTC, ISO), problem.
    """
    folder = Path(runs)
    names, key = _run_names(folder), _key()
    stored = dict(_read(folder / "index.sqlite", [name for name in names if is_text(name)], key))
    rows, fresh = list[Row](), dict[str, tuple[str, str]]()
    for name in names:
        place = os.path.join(folder, name)
        if not is_text(name):
            rows.append({"folder": place, "name": escaped(name), "problem": NO_TEXT})
            continue
        known = stored.get(name)
        row = None if known is None else _unchanged(place, *known)
        if row is None or known is None:
            before = _stamp(place)
            row, remembered = _row(folder / name)
            if remembered:
                fresh[name] = f"{before}; {_last_stamp(place, row['done'])}", json.dumps(row)
        else:
            fresh[name] = known
        rows.append({"folder": place, **row})
    if fresh != stored:
        _write(folder / "index.sqlite", fresh, key)
    return rows


NO_TEXT = "the name of its folder is not valid UTF-8; rename the folder"
"""Problem of a run that is listed without being read."""


def _run_names(folder: Path) -> list[str]:
    """Names of the folders that hold a run.json, sorted."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if os.path.exists(os.path.join(entry.path, "run.json")))
    except OSError:
        return []


def _unchanged(place: str, stamp: str, content: str) -> Row | None:
    """A stored row of the run in the folder `place`; None if a file that it was read from has changed."""
    row: Row = json.loads(content)
    return row if stamp == f"{_stamp(place)}; {_last_stamp(place, row['done'])}" else None


def _row(folder: Path) -> tuple[Row, bool]:
    """The row of a run, whose state and last round are read in full, and whether it may be remembered.

    What is damaged, and what other code has a say in, is read again every time. Rounds before the last one are not
    read: those of a long run take seconds.
    """
    if (short := summary(folder, whole=True, chained=False)) is not None:
        return _summarised(short), True
    from drift.runs.run import Run

    try:
        run = Run(folder)
        if run.rounds():
            run.stored_state()
            run.round(-1)
        return _columns(run), False
    except (LookupError, ValueError, OSError, TypeError, AttributeError) as reason:  # a damaged run is listed too
        return {"name": folder.name, "problem": " ".join(str(reason).split())}, False


def _summarised(run: RunSummary) -> Row:
    return {
        "name": run.folder.name,
        "method": run.label,
        "dataset": run.data_name,
        "model": run.model,
        "partition": run.partition,
        "seed": run.seed,
        **_progress(run.folder, run.done, run.rounds, run.metrics.get("accuracy")),
    }


def _columns(run: Run) -> Row:
    from drift.plugins import tables

    experiment = run.experiment
    return {
        "name": run.name,
        "method": run.label,
        "dataset": run.data_name,
        "model": run.model_name,
        "partition": tables.name(experiment.clients.partition),
        "seed": run.seed,
        **_progress(
            run.folder,
            _complete(run.folder),
            experiment.rounds,
            named=run.metric_names.get("accuracy", "accuracy"),
        ),
    }


def _progress(folder: Path, done: list[int], rounds: int, last: float | None = None, named: str = "accuracy") -> Row:
    """Numbers of the complete rounds; `last` is the accuracy of the last one, where it is at hand, `named` its name."""
    return {
        "done": len(done),
        "rounds": rounds,
        "accuracy": _last_number(folder, done, named) if last is None else last,
        "updated": _updated(folder),
        "problem": None,
    }


def _complete(folder: Path) -> list[int]:
    """Numbers of the rounds before the commit point that the state's header states, ascending."""
    if not (folder / paths.STATE).exists():
        return []
    following = round_headers.read_state(folder).index
    return [index for index in round_headers.round_numbers(folder) if index < following]


def _last_number(folder: Path, indices: list[int], name: str) -> float | None:
    for number in reversed(indices):
        numbers = round_headers.read_small_arrays(paths.round_path(folder, number)).numbers()
        if name in numbers:
            return numbers[name]
    return None


def _updated(folder: Path) -> str:
    latest = max(path.stat().st_mtime for path in _files(folder))
    return datetime.fromtimestamp(latest, UTC).isoformat(timespec="seconds")


def _stamp(place: str) -> str:
    """Changes whenever a round is committed, or one of the files that a row is read from is another one."""
    return " ".join([_fact(f"{place}/{name}") for name in ("run.json", paths.STATE, "rounds")])


def _last_stamp(place: str, done: int) -> str:
    return _fact(f"{place}/{paths.round_file(done - 1)}") if done else ""


def _fact(path: str) -> str:
    """Times, size and number of a file; nobody but the system sets the time of its last change."""
    try:
        fact = os.stat(path)
    except OSError:
        return "-"
    return f"{fact.st_mtime_ns} {fact.st_ctime_ns} {fact.st_size} {fact.st_ino}"


def _files(folder: Path) -> list[Path]:
    return [path for name in ("run.json", paths.STATE) if (path := folder / name).exists()]


def _read(path: Path, names: list[str], key: bytes) -> Iterator[tuple[str, tuple[str, str]]]:
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
            wanted, most = set(names), len(names) + SPARE
            query = "SELECT name, stamp, content, digest FROM fedscape_2 LIMIT ?"
            for name, stamp, content, digest in _query(base, query, most, steps=STEPS * most):
                if name in wanted and digest == _digest(key, name, stamp, content):
                    yield name, (stamp, content)
    except (sqlite3.Error, TypeError, ValueError, OSError):
        return


def _query(base: sqlite3.Connection, query: str, *values: int, steps: int = STEPS) -> Iterator[tuple[str, ...]]:
    """Rows of a query one by one, which is aborted after so many steps."""
    base.set_progress_handler(lambda: 1, steps)
    yield from base.execute(query, values)


def _write(path: Path, rows: Mapping[str, tuple[str, str]], key: bytes) -> None:
    """Write a new table and put it in the old one's place; where that cannot be, the next call tries again."""
    texts = [(name, *row) for name, row in rows.items()]
    base = sqlite3.connect(":memory:")
    with closing(base), base:
        base.execute(f"CREATE TABLE {_COLUMNS}")
        base.executemany("INSERT INTO fedscape_2 VALUES (?, ?, ?, ?)", [(*text, _digest(key, *text)) for text in texts])
        base.commit()
        content = base.serialize()
    with suppress(OSError):
        write_bytes(path, content)


def _key() -> bytes:
    """What rows are signed with: the user's secret, the names that settings may use, the state of methods' files."""
    known = [plugins.names(package) for package in PACKAGES]
    written = [_fact(str(place / f"{name}.py")) for place in map(Path, drift.methods.__path__) for name in known[-1]]
    return hmac.digest(secret(), json.dumps([known, written]).encode(), "sha256")


def _digest(key: bytes, *texts: str) -> str:
    """Digest that nobody without the user's secret can give a row."""
    return hmac.digest(key, "\0".join(texts).encode(), "sha256").hex()[:32]
