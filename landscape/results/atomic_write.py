"""Atomic writes: a file is replaced completely or stays as it is. Needs the standard library only."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import BinaryIO


def write_bytes(path: Path, *data: bytes | memoryview | Iterable[bytes | memoryview]) -> None:
    """Write a file without a name, where the system has such, flush it to disk and put it in its place.

    A failure leaves the old file; a stopped process leaves nothing, or where there are no files without a name, one of
    a temporary name (`clear`).

    Args:
        path: The file.
        data: Its content, in pieces, or iterables of them.

    Raises:
        OSError: If the disk is full or the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    temporary.unlink(missing_ok=True)  # left by a stopped process, or a link
    with _replacing(path, temporary, _nameless(path.parent)) as file:
        for chunk in data:
            for piece in [chunk] if isinstance(chunk, bytes | memoryview) else chunk:
                file.write(piece)


def _nameless(folder: Path) -> int | None:
    """Descriptor of a new file without a name in a folder; None where the system or the file system has none."""
    if not hasattr(os, "O_TMPFILE") or not os.path.exists("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
    except OSError:  # a folder that cannot be written says so when a name is tried
        return None


def complete(path: Path, begun: Path, size: int, regions: Iterable[tuple[int, Iterable[bytes | memoryview]]]) -> None:
    """Write the missing parts of a file that was begun, flush it to disk and rename it; a failure removes it.

    Args:
        path: The file.
        begun: The file under its temporary name, in the same folder.
        size: Bytes of the complete file.
        regions: Places in the file, and what is to be written there, in pieces.

    Raises:
        OSError: If the disk is full or the folder cannot be written.
    """
    with _replacing(path, begun, begun) as file:
        file.truncate(size)
        for offset, pieces in regions:
            file.seek(offset)
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
def _replacing(path: Path, temporary: Path, source: Path | int | None) -> Iterator[BinaryIO]:
    """The new content of a file; flushed and put in its place at the end, removed after an error.

    Args:
        path: The file.
        temporary: Its name before.
        source: `temporary` where it was begun; the descriptor of a file without a name; None: a new one.
    """
    try:
        with open(temporary if source is None else source, "xb" if source is None else "r+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if isinstance(source, int):
                _name(file, temporary)
        os.replace(temporary, path)
        _flush_renames(path.parent)
    except OSError as reason:
        if reason.filename is None:  # such as on a full disk
            reason.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _name(file: BinaryIO, path: Path) -> None:
    """Give a file without a name one; a copy of it where the system does not."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.link(f"/proc/self/fd/{file.fileno()}", path.name, dst_dir_fd=folder)  # which follows the link in /proc
    except OSError:
        file.seek(0)
        with open(path, "xb") as copy:
            shutil.copyfileobj(file, copy)
            copy.flush()
            os.fsync(copy.fileno())
    finally:
        os.close(folder)


def _flush_renames(folder: Path) -> None:
    """Flush the renames in a folder to disk, so that they survive a power failure in their order."""
    if os.name == "nt":  # a folder cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
