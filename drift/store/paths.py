"""Places of a run's files in its folder; needs the standard library only."""

import os
from pathlib import Path
from typing import NamedTuple

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
