"""Atomic writes: a file is replaced completely or stays as it is. Needs the standard library only."""

from __future__ import annotations

import os
from pathlib import Path


def write_bytes(path: Path, *data: bytes | memoryview) -> None:
    """Write a file under a temporary name, flush it to disk and rename it; a failure leaves the old file.

    Args:
        path: The file.
        data: Its content, in pieces.

    Raises:
        OSError: If the disk is full or the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.unlink(missing_ok=True)  # left by a stopped process, or a link
        with open(temporary, "xb") as file:
            for piece in data:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _flush_renames(path.parent)
    except OSError as reason:
        if reason.filename is None:  # such as on a full disk
            reason.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def clear(*folders: Path) -> None:
    """Remove temporary files of stopped writes from folders; the caller has the lock for writing there."""
    for folder in folders:
        for path in folder.glob(".*.part"):
            path.unlink(missing_ok=True)


def _flush_renames(folder: Path) -> None:
    """Flush the renames in a folder to disk, so that they survive a power failure in their order."""
    if os.name == "nt":  # a folder cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
