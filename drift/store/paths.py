"""Places of a run's files in its folder; imports nothing heavy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from drift.store.numpy_files import Damaged

STATE = "state.safetensors"
"""Name of the commit point in a run's folder."""

CLIENTS = "clients"
"""Name of the folder of the states of clients in a run's folder."""


def round_path(folder: Path, index: int) -> Path:
    """File of round `index`."""
    return folder / round_file(index)


def round_file(index: int) -> str:
    """Path of the file of round `index` inside the run's folder."""
    return f"rounds/{index:06d}.safetensors"


def require_inside(path: Path, folder: Path) -> None:
    """Raise Damaged for a link out of the run's folder: a run from elsewhere reads its own files only."""
    if _is_plain(path, folder):
        return
    if not path.resolve().is_relative_to(folder.resolve()):
        raise Damaged(path, f"leads out of {folder}, which is not followed", "Put the file itself in its place.")


def _is_plain(path: Path, folder: Path) -> bool:
    """Whether neither a link nor a step upwards lies between the folder and the path."""
    parts = path.parts[len(folder.parts) :]
    if path.parts[: len(folder.parts)] != folder.parts or ".." in parts:
        return False
    steps = ("/".join(parts[: count + 1]) for count in range(len(parts)))
    return not any(os.path.islink(f"{folder}/{step}") for step in steps)


class Stamp(NamedTuple):
    """Identity of a file's content, as far as the file system states it.

    Nobody but the system sets the time of its last change.
    """

    device: int
    inode: int
    size: int
    written: int
    changed: int


def stamp(path: str | Path) -> Stamp | None:
    """The stamp of a file or folder; None where there is none."""
    try:
        entry = os.stat(path)
    except OSError:
        return None
    return Stamp(entry.st_dev, entry.st_ino, entry.st_size, entry.st_mtime_ns, entry.st_ctime_ns)
