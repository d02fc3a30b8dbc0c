"""File locks: one process per training of a run, one per computation of a result."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class Busy(RuntimeError):
    """A run that another process is writing."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a run for writing; a second process is refused.

    Raises:
        Busy: If another process has the lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _open(folder / ".lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as reason:
            raise Busy(f"{folder} is being trained by another process; wait for it or stop it.") from reason
        yield


@contextmanager
def remove_on_failure(folder: Path) -> Iterator[None]:
    """Remove the folder of a run if writing it fails before it has a run.json."""
    try:
        yield
    except BaseException:
        if not (folder / "run.json").exists():
            shutil.rmtree(folder)
        raise


@contextmanager
def lock_result(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Lock the result `path`, so that two processes never compute the same one; waits for another process.

    Raises:
        Busy: If another process computes it and `wait` is false.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _open(path.with_name(f".{path.name}.lock")) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as reason:
            raise Busy(f"{path} is being computed by another process; wait for it or stop it.") from reason
        yield


def _open(path: Path) -> IO[bytes]:
    """Open a file to lock; it is not truncated, and a link in its place is refused."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    return open(path, "r+b", buffering=0, opener=lambda name, _: os.open(name, flags, 0o666))
