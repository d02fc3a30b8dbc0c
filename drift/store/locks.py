"""Who may write: one process trains a run, one computes a result."""

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
    """Hold a run for writing; a second process is refused.

    Raises:
        Busy: If another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _opened(folder / ".lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as reason:
            raise Busy(f"{folder} is being trained by another process; wait for it or stop it.") from reason
        yield


@contextmanager
def whole(folder: Path) -> Iterator[None]:
    """Take a run that fails while it is written at one go away again; one that has a run.json stays."""
    try:
        yield
    except BaseException:
        if not (folder / "run.json").exists():
            shutil.rmtree(folder)
        raise


@contextmanager
def alone(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Wait until no other process makes the result `path`, and hold it: two never compute one result at a time.

    Raises:
        Busy: If another process makes it and `wait` is false.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _opened(path.with_name(f".{path.name}.lock")) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as reason:
            raise Busy(f"{path} is being computed by another process; wait for it or stop it.") from reason
        yield


def _opened(path: Path) -> IO[bytes]:
    """A file to lock; a link in its place, as a run from elsewhere may have, is not followed, nothing is emptied."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    return open(path, "r+b", buffering=0, opener=lambda name, _: os.open(name, flags, 0o666))
