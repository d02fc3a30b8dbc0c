"""Index of the runs in a folder: a table in the user's cache, rebuilt from the folders when it is lost.

A row counts only while the names that settings use are the same, and none of the run's files that it was read from has
changed; other rows are read again from the folder. Opening the run checks all of its files again.

Runs that this package trained are read without importing torch (`drift.runs.run_summary`); those of other programs or
with code from outside, compressed ones, and all that are not as they should be are opened.
"""

import hashlib
import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drift.runs.metric_names import recorded, stated
from drift.runs.run_names import find
from drift.runs.run_summary import PACKAGES, RunSummary, opened_summary, summary
from drift.store import paths, round_headers
from drift.store.numpy_files import escaped, is_text
from landscape import plugins
from landscape.results.atomic_write import write_bytes
from landscape.results.user_folder import cache_folder

__all__ = ["Row", "find", "index"]

Row = dict[str, Any]

Stored = dict[str, tuple[str, Row]]
"""Stamp and row of each run, by the name of its folder."""


def index(runs: str | Path = "runs") -> list[Row]:
    """One row per run in the folder `runs`, by name.

    Folders that have not changed since the last call are not read. A damaged run has a row with `problem` and no
    numbers, and so has one whose name is not valid UTF-8, which the table cannot hold. Where the user's cache cannot be
    written, no row is remembered and the rows are the same.

    Returns:
        Rows with name, folder, method, dataset, model, partition, seed, done and rounds (rounds on disk and in all),
        accuracy (last one, fraction), metrics (of the last round, by name), updated (UTC, ISO), problem.
    """
    folder = Path(runs)
    path, known_by = _table(folder), json.dumps([plugins.names(package) for package in PACKAGES])
    stored = _read(path, known_by)
    rows, fresh = list[Row](), Stored()
    for name in _run_names(folder):
        entry = os.path.join(folder, name)
        if not is_text(name):
            rows.append({"folder": entry, "name": escaped(name), "problem": NO_TEXT})
            continue
        before = _stamp(entry)
        stamp, row = stored.get(name, ("", {}))
        remembered = bool(stamp) and stamp == f"{before}; {_last_stamp(entry, row['done'])}"
        if not remembered:
            row, remembered = _row(folder / name)
        if remembered:
            fresh[name] = f"{before}; {_last_stamp(entry, row['done'])}", row
        rows.append({"folder": entry, **row})
    if fresh != stored:
        _write(path, known_by, fresh)
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


def _row(folder: Path) -> tuple[Row, bool]:
    """The row of a run, whose state and last round are read in full, and whether it may be remembered.

    What is damaged, and what other code has a say in, is read again every time. Rounds before the last one are not
    read: those of a long run take seconds.
    """
    try:
        if (short := summary(folder, check=True, chained=False)) is not None:
            return _columns(short), True
        from drift.runs.run import Run

        run = Run(folder)
        if run.rounds():
            run.stored_state()
        return _columns(opened_summary(run)), False
    except (LookupError, ValueError, OSError, TypeError, AttributeError) as reason:  # a damaged run is listed too
        return {"name": folder.name, "problem": " ".join(str(reason).split())}, False


def _columns(run: RunSummary) -> Row:
    accuracy, named = run.metrics.get("accuracy"), {**recorded(run.about), **stated()}.get("accuracy", "accuracy")
    return {
        "name": run.folder.name,
        "method": run.label,
        "dataset": run.data_name,
        "model": run.model,
        "partition": run.partition,
        "seed": run.seed,
        "done": len(run.done),
        "rounds": run.rounds,
        "accuracy": _last_number(run.folder, run.done, named) if accuracy is None else accuracy,
        "metrics": dict(sorted(run.metrics.items())),
        "updated": _updated(run.folder),
        "problem": None,
    }


def _last_number(folder: Path, indices: list[int], name: str) -> float | None:
    for number in reversed(indices):
        numbers = round_headers.read_small_arrays(paths.round_path(folder, number)).numbers()
        if name in numbers:
            return numbers[name]
    return None


def _updated(folder: Path) -> str:
    latest = max(path.stat().st_mtime for path in _files(folder))
    return datetime.fromtimestamp(latest, UTC).isoformat(timespec="seconds")


def _stamp(entry: str) -> str:
    """Changes with every committed round, every file that a row is read from, and the names of numbers."""
    facts = [_fact(f"{entry}/{name}") for name in ("run.json", paths.STATE, "rounds")]
    return " ".join([*facts, *(f"{usual}={name}" for usual, name in sorted(stated().items()))])


def _last_stamp(entry: str, done: int) -> str:
    return _fact(f"{entry}/{paths.round_file(done - 1)}") if done else ""


def _fact(path: str) -> str:
    return " ".join(map(str, paths.stamp(path) or "-"))


def _files(folder: Path) -> list[Path]:
    return [path for name in ("run.json", paths.STATE) if (path := folder / name).exists()]


def _table(folder: Path) -> Path:
    """The file with the rows of a folder of runs."""
    return cache_folder() / "runs" / f"{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]}.json"


def _read(path: Path, known_by: str) -> Stored:
    """Stamps and rows by the name of the run; none where the table is lost, damaged or of another version."""
    try:
        digest, _, text = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, ValueError):
        return {}
    return (
        {name: (stamp, row) for name, (stamp, row) in json.loads(text).items()}
        if digest == _digest(known_by, text)
        else {}
    )


def _write(path: Path, known_by: str, rows: Stored) -> None:
    """Write the table in the old one's place; where that cannot be, the next call tries again."""
    text = json.dumps(rows)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, f"{_digest(known_by, text)}\n{text}".encode())


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
