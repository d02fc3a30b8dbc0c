"""What runs exist: a table kept in runs/index.sqlite, made anew from the folders whenever it is lost."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drift.run import Run
from landscape import plugins

Row = dict[str, Any]

_TABLE = (
    "CREATE TABLE IF NOT EXISTS fedscape_2 "
    "(name TEXT PRIMARY KEY, stamp TEXT NOT NULL, content TEXT NOT NULL, digest TEXT NOT NULL)"
)


def index(runs: str | Path = "runs") -> list[Row]:
    """One row a run in the folder `runs`, by name.

    Folders that have not changed since the last call are not read again. A damaged run has a row with
    `problem` and no numbers. Where the folder cannot be written, nothing is kept and the rows are the same.

    Returns:
        Rows with name, folder, method, dataset, model, partition, seed, done and rounds (rounds on disk and in all),
        accuracy (last one, fraction), updated (UTC, ISO), problem.
    """
    folder = Path(runs)
    known = _read(folder / "index.sqlite")
    fresh = {}
    for path in sorted(found.parent for found in folder.glob("*/run.json")):
        stamp, before = _stamp(path), known.get(path.name)
        row = before[1] if before is not None and before[0] == stamp else _row(path)
        fresh[path.name] = (stamp, row)
    if fresh != known and folder.is_dir() and not (folder / "index.sqlite").is_symlink():
        _write(folder / "index.sqlite", fresh)
    return [{"folder": str(folder / name), **row} for name, (_, row) in fresh.items()]


def find(runs: str | Path, text: str) -> Path:
    """Folder of the run that `text` means: a path, a name in the folder `runs`, or the beginning of one name.

    Raises:
        LookupError: If there is none, or several; candidates are named.
    """
    path = Path(text)
    if (path / "run.json").exists():
        return path
    names = sorted(found.parent.name for found in Path(runs).glob("*/run.json"))
    near = [text] if text in names else [name for name in names if name.startswith(text)]
    if len(near) == 1:
        return Path(runs) / near[0]
    if near:
        raise LookupError(f"{text!r} begins the names of {len(near)} runs: {', '.join(near)}. Give more of the name.")
    if path.is_dir():
        raise LookupError(f"{text} is no run: it has no run.json. Give the folder of a run, or --runs DIR and a name.")
    if not names:
        raise LookupError(f"no run named {text!r}: {runs} holds no runs. Train one, or name the folder by --runs DIR.")
    raise LookupError(f"{plugins.unknown('run', text, names)} They are in {runs}; another folder: --runs DIR.")


def _row(folder: Path) -> Row:
    try:
        return _described(Run(folder))
    except (LookupError, ValueError, OSError) as reason:  # a damaged run is listed too
        return {"name": folder.name, "problem": " ".join(str(reason).split())}


def _described(run: Run) -> Row:
    experiment = run.experiment
    indices = run.rounds()
    return {
        "name": run.name,
        "method": run.label,
        "dataset": experiment.task.dataset,
        "model": experiment.task.model,
        "partition": experiment.resolved()["clients"]["partition"]["name"],
        "seed": experiment.seed,
        "done": len(indices),
        "rounds": experiment.rounds,
        "accuracy": _last_accuracy(run, indices),
        "updated": _updated(run.folder),
        "problem": None,
    }


def _last_accuracy(run: Run, indices: list[int]) -> float | None:
    for number in reversed(indices):
        metrics = run.round(number).metrics
        if "accuracy" in metrics:
            return metrics["accuracy"]
    return None


def _updated(folder: Path) -> str:
    latest = max(path.stat().st_mtime for path in _files(folder))
    return datetime.fromtimestamp(latest, UTC).isoformat(timespec="seconds")


def _stamp(folder: Path) -> str:
    """Changes whenever a round is committed."""
    facts = [path.stat() for path in _files(folder)]
    return " ".join(f"{fact.st_mtime_ns} {fact.st_size}" for fact in facts)


def _files(folder: Path) -> list[Path]:
    return [path for name in ("run.json", "state.safetensors") if (path := folder / name).exists()]


def _read(path: Path) -> dict[str, tuple[str, Row]]:
    if not path.exists() or path.is_symlink():  # a link may lead to any database
        return {}
    try:
        with closing(sqlite3.connect(path, timeout=1)) as base:
            rows = base.execute("SELECT name, stamp, content, digest FROM fedscape_2").fetchall()
        whole = [(name, stamp, text) for name, stamp, text, digest in rows if digest == _digest(name, stamp, text)]
        return {name: (stamp, json.loads(content)) for name, stamp, content in whole}
    except (sqlite3.Error, ValueError):  # lost, locked, damaged or of another making: the folders are the truth
        return {}


def _write(path: Path, rows: Mapping[str, tuple[str, Row]]) -> None:
    texts = [(name, stamp, json.dumps(row)) for name, (stamp, row) in rows.items()]
    values = [(*text, _digest(*text)) for text in texts]
    try:
        _replace(path, values)
    except sqlite3.OperationalError:
        return  # read-only or busy: the next call tries again
    except sqlite3.DatabaseError:  # no database
        try:
            path.unlink()
            _replace(path, values)
        except (OSError, sqlite3.Error):
            return


def _replace(path: Path, values: list[tuple[str, str, str, str]]) -> None:
    with closing(sqlite3.connect(path, timeout=1)) as base, base:
        base.execute(_TABLE)
        base.execute("DELETE FROM fedscape_2")
        base.executemany("INSERT INTO fedscape_2 VALUES (?, ?, ?, ?)", values)


def _digest(*texts: str) -> str:
    """Tells a row that was altered on the disk; such a row is made anew."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
