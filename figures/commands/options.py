"""Options that several verbs share, and how a text given for a run becomes runs."""

from __future__ import annotations

import errno
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from drift.run import Run

Runs = Annotated[Path, Parameter(name="--runs", help="Folder of all runs.")]
Data = Annotated[
    Path | None,
    Parameter(name="--data", help="Folder of the datasets; else FEDSCAPE_DATA, else the Hugging Face hub."),
]
Task = Annotated[
    str | None,
    Parameter(
        name="--task",
        help="Your own model, loss and samples in place of the recorded ones: FILE.py:FUNCTION, which returns a Task.",
    ),
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Write JSON to stdout.")]
Settings = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        consume_multiple=True,
        negative="",
        help="Change settings: KEY=VALUE ..., as in method.window=5. May be repeated.",
    ),
]
Workers = Annotated[int, Parameter(name="--workers", help="Processes that work side by side, one core each.")]
Cluster = Annotated[
    str | None,
    Parameter(name="--cluster", help="Address of a Dask scheduler (tcp://HOST:8786) whose workers do it instead."),
]
Folder = Annotated[Path | None, Parameter(name=["--out", "-o"], help="Folder for the pictures.")]


def opened(text: str, runs: Path, data: Path | None, task: str | None = None) -> Run:
    """The run that a path, a name or the beginning of a name means."""
    from drift.index import find
    from drift.opening import open as open_run

    return open_run(find(runs, text), data=data, task=task)


def opened_all(texts: Sequence[str], runs: Path, data: Path | None, task: str | None = None) -> list[Run]:
    """Runs by path, name or beginning of a name; a folder of runs stands for all of them.

    Raises:
        LookupError: If there is none.
    """
    from drift.opening import open as open_run

    found: dict[str, Run] = {}
    for text in texts:
        inside = sorted(path.parent for path in Path(text).glob("*/run.json"))
        chosen = (
            [open_run(path, data=data, task=task) for path in inside] if inside else [opened(text, runs, data, task)]
        )
        found |= {str(run.folder.resolve()): run for run in chosen}
    return list(found.values())


def require_folder(path: Path) -> None:
    """Refuse a folder that could not be made or written into, before anything is computed; nothing is left behind.

    Raises:
        OSError: If it is a file, or what there is of its path cannot be written into.
    """
    place = next(parent for parent in (path, *path.absolute().parents) if os.path.lexists(parent))
    try:
        with TemporaryFile(dir=place):
            pass
    except FileNotFoundError as reason:  # a place that is there and takes no files, such as /proc
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place)) from reason
    except OSError as reason:
        raise OSError(reason.errno, reason.strerror, str(place)) from reason


def require_file(path: Path) -> None:
    """Refuse a file that could not be written, before anything is computed.

    Raises:
        OSError: If it is a folder, or its own folder could not be made or written into.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    require_folder(path.absolute().parent)


def arguments(texts: Sequence[str] | None) -> dict[str, Any]:
    """Options by name from texts like round=-1 or rounds=[0,5]; values as TOML, else as text.

    Raises:
        ValueError: If a text has no equals sign.
    """
    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"cannot read {text!r}; write KEY=VALUE, as in round=-1.")
        try:
            found[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name.strip()] = value.strip()
    return found
