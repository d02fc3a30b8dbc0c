"""Atomic writes: a file is replaced completely or stays as it is. Needs the standard library only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import BinaryIO, Literal


def write_bytes(path: Path, *data: bytes | memoryview | Iterable[bytes | memoryview]) -> None:
    """Write a file under a temporary name, flush it to disk and rename it; a failure leaves the old file.

    Args:
        path: The file.
        data: Its content, in pieces, or iterables of them.

    Raises:
        OSError: If the disk is full or the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    temporary.unlink(missing_ok=True)  # left by a stopped process, or a link
    with _replacing(path, temporary, "xb") as file:
        for part in data:
            for piece in [part] if isinstance(part, bytes | memoryview) else part:
                file.write(piece)


def complete(path: Path, begun: Path, size: int, parts: Iterable[tuple[int, Iterable[bytes | memoryview]]]) -> None:
    """Write the missing parts of a file that was begun, flush it to disk and rename it; a failure removes it.

    Args:
        path: The file.
        begun: The file under its temporary name, in the same folder.
        size: Bytes of the complete file.
        parts: Places in the file, and what is to be written there, in pieces.

    Raises:
        OSError: If the disk is full or the folder cannot be written.
    """
    with _replacing(path, begun, "r+b") as file:
        file.truncate(size)
        for place, pieces in parts:
            file.seek(place)
            for piece in pieces:
                file.write(piece)


def temporary_name(path: Path) -> Path:
    """A name for a file to be completed as `path`, unique in this process; `clear` removes it after a stop."""
    return path.with_name(f".{path.name}.{os.getpid()}.{next(_NUMBERS)}.part")


_NUMBERS = count()


def clear(*folders: Path) -> None:
    """Remove temporary files of stopped writes from folders; the caller has the lock for writing there."""
    for folder in folders:
        for path in folder.glob(".*.part"):
            path.unlink(missing_ok=True)


@contextmanager
def _replacing(path: Path, temporary: Path, mode: Literal["xb", "r+b"]) -> Iterator[BinaryIO]:
    """The temporary file, opened; flushed and renamed at the end, removed after an error."""
    try:
        with open(temporary, mode) as file:
            yield file
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


def _flush_renames(folder: Path) -> None:
    """Flush the renames in a folder to disk, so that they survive a power failure in their order."""
    if os.name == "nt":  # a folder cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
