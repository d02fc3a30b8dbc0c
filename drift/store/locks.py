"""File locks: one process per training of a run, one per computation of a result."""

import importlib.util
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None  # Windows has none


class Busy(RuntimeError):
    """A run that another process is writing."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a run for writing; a second process is refused.

    Raises:
        Busy: If another process has the lock.
    """
    with _owned(folder / ".lock", f"{folder} is being trained", wait=False):
        yield


@contextmanager
def remove_on_failure(folder: Path) -> Iterator[None]:
    """Remove the folder of a run if writing it fails before it has a run.json."""
    try:
        yield
    except BaseException:
        if not (folder / "run.json").exists():
            shutil.rmtree(folder, ignore_errors=os.name == "nt")  # which keeps an open file, such as the lock
        raise


@contextmanager
def lock_result(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Lock the result `path`, so that two processes never compute the same one; waits for another process.

    Raises:
        Busy: If another process computes it and `wait` is false.
    """
    with _owned(path.with_name(f".{path.name}.lock"), f"{path} is being computed", wait=wait):
        yield


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, or the folder itself where it is absent; nothing is written."""
    existing = next((parent for parent in (folder, *folder.absolute().parents) if parent.exists()), folder)
    return os.access(existing, os.W_OK | os.X_OK)


@contextmanager
def _owned(path: Path, what: str, *, wait: bool) -> Iterator[None]:
    """The lock of a file, which is made; `what` begins the sentence of the refusal."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _open(path) as file:
        try:
            _lock(file, wait=wait)
        except BlockingIOError as reason:
            raise Busy(f"{what} by another process; wait for it or stop it.") from reason
        yield


def _open(path: Path) -> IO[bytes]:
    """Open a file to lock; it is not truncated, and a link in its place is refused."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
        raise OSError(f"{path} is a link; a lock is a file.")
    return open(path, "r+b", buffering=0, opener=lambda name, _: os.open(name, flags, 0o666))


def _lock(file: IO[bytes], *, wait: bool) -> None:
    """Lock an open file until it is closed; BlockingIOError if another process has it and `wait` is false."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        _lock_first_byte(file, wait=wait)


def _lock_first_byte(file: IO[bytes], *, wait: bool) -> None:
    """The same on Windows."""
    msvcrt: Any = importlib.import_module("msvcrt")
    while True:
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError as reason:  # it is locked
            if not wait:
                raise BlockingIOError(*reason.args) from reason
            time.sleep(0.1)
        else:
            return
