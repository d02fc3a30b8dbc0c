"""Checks of files from outside: refused by the sizes that they state, before memory is allocated."""

import zipfile
from collections.abc import Callable, Iterable
from math import prod
from pathlib import Path
from typing import IO

import numpy as np
import psutil

RATIO = 100
"""Largest ratio of unpacked to stored bytes; larger ones are refused as bombs, as trained weights hardly shrink."""

FREE = 1 << 24
"""Unpacked bytes that are never refused, as small files of zeros shrink well."""

TENSORS = 10_000
"""Tensors of one file, more than any model that is trained here has."""

MEMBERS = 10 * TENSORS
"""Parts of one zip file: an optimiser keeps up to four tensors per parameter."""


class Refused(ValueError):
    """A file that is not read because of the sizes that it states."""


def require_inside(path: Path, folder: Path) -> None:
    """Raise Refused for a file outside a folder, by a symbolic link or `..`, or one that is no file (a pipe blocks)."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise Refused(f"{path} leads out of {folder}; links out of the folder are not followed, copy the file.")
    if path.exists() and not path.is_file():
        raise Refused(f"{path} is not a regular file; give tensors in files.")


def require_npz(path: Path) -> list[str]:
    """Names of the arrays of numbers in an .npz; Python objects and texts are left out, and never unpickled.

    Raises:
        Refused: If an array has another size than it states, or the file is a bomb.
    """
    require_zip(path)
    names = []
    with zipfile.ZipFile(path) as archive:
        require_few(path, len(archive.infolist()))
        for entry in archive.infolist():
            with archive.open(entry) as file:
                shape, dtype, used = _npy_header(file, path, entry.filename)
            if dtype.kind not in "fiubc":
                continue
            names.append(entry.filename.removesuffix(".npy"))
            stated = prod(shape) * dtype.itemsize
            if stated != entry.file_size - used:
                raise Refused(
                    f"{path}: array {entry.filename!r} states shape {shape} of {stated} bytes, and holds "
                    f"{entry.file_size - used}; it is damaged, or made to exhaust memory."
                )
    return names


def require_room(path: Path, stated: int) -> None:
    """Raise Refused for content that exceeds the free memory; a sparse file may state any size."""
    free = psutil.virtual_memory().available
    if stated > free:
        raise Refused(f"{path} states {stated} bytes, and {free} bytes of memory are free; it is not read.")


def require_few(path: Path, number: int, what: str = "tensors", most: int = TENSORS) -> None:
    """Raise Refused for a file with more tensors or parts than `most`, before they are read."""
    if number > most:
        raise Refused(
            f"{path} has {number} {what}; a file with up to {most} is read. Save model.state_dict() of one model."
        )


def require_stored(path: Path, sizes: Iterable[tuple[str, int, int]]) -> None:
    """Refuse tensors that state more bytes than are stored, such as views that repeat a value.

    Args:
        path: The file, for the message.
        sizes: Name, stated bytes and stored bytes of every tensor.

    Raises:
        Refused: With the first such tensor.
    """
    for name, stated, stored in sizes:
        if stated > max(stored, FREE):
            raise Refused(
                f"{path}: tensor {name!r} states {stated} bytes and stores {stored}; it is made to exhaust memory."
            )


def require_zip(path: Path) -> None:
    """Raise Refused for a damaged zip, and for one that is larger than memory or a bomb by what it states."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError) as reason:
        raise Refused(f"{path} cannot be read ({reason}); it is truncated or not a checkpoint.") from reason
    require_few(path, len(entries), "parts", MEMBERS)
    size, stated = path.stat().st_size, sum(entry.file_size for entry in entries)
    if stated > max(FREE, RATIO * size):
        raise Refused(
            f"{path} has {size} bytes and states {len(entries)} parts of {stated} bytes; it is taken for a zip bomb "
            "and not read."
        )
    require_room(path, stated)


def _npy_header(file: IO[bytes], path: Path, name: str) -> tuple[tuple[int, ...], np.dtype, int]:
    """Shape, type and length of the header of an array in numpy's own format."""
    readers: dict[tuple[int, int], Callable[..., tuple[tuple[int, ...], bool, np.dtype]]] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        version = np.lib.format.read_magic(file)
        if version not in readers:
            raise ValueError(f"format {version}")
        shape, _, dtype = readers[version](file)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as reason:
        raise Refused(f"{path}: array {name!r} cannot be read ({' '.join(str(reason).split())[:200]}).") from reason
    return shape, dtype, file.tell()
