"""Tensors that lie in files and are read where they are used: mapped, and released once they were read.

Pages of a mapped file count as memory of the process until they are released; the file's content stays, and comes back
when it is read again.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from dataclasses import dataclass
from math import prod
from pathlib import Path

import torch
from torch import Tensor


@dataclass(frozen=True)
class Mapping:
    """A mapped file: its last address, the mapping, and path and place of a file that is not complete yet."""

    end: int
    memory: weakref.ref[mmap.mmap]
    path: Path | None = None
    offset: int = 0


_MAPPINGS: dict[int, Mapping] = {}
"""Mappings by first address."""


def map_tensor(path: Path, dtype: torch.dtype, shape: tuple[int, ...], offset: int = 0) -> Tensor:
    """A tensor in a file, which `release` knows; what is written to it stays in this process, if at all."""
    return _mapped(_open(path, mmap.ACCESS_COPY, offset + prod(shape) * dtype.itemsize), dtype, shape, offset)


def map_temporary(path: Path, dtype: torch.dtype, shape: tuple[int, ...], offset: int) -> Tensor:
    """The same for a file that is to be completed (`incomplete_file`), or is removed with the tensor."""
    memory = _open(path, mmap.ACCESS_COPY, offset + prod(shape) * dtype.itemsize)
    weakref.finalize(memory, path.unlink, missing_ok=True)
    return _mapped(memory, dtype, shape, offset, path)


def scratch_tensor(dtype: torch.dtype, shape: tuple[int, ...], folder: Path | None = None) -> Tensor:
    """A tensor in a temporary file without a name, which is gone with the tensor; writes to it reach the file.

    Args:
        folder: Where the file lies, if it can be written; else, or for None, in the folder TMPDIR.
    """
    place = folder if folder is not None and os.access(folder, os.W_OK) else None
    size = prod(shape) * dtype.itemsize
    with tempfile.TemporaryFile(dir=place) as file:
        file.truncate(size)
        return _mapped(mmap.mmap(file.fileno(), size), dtype, shape, 0)


def release(address: int) -> None:
    """Free the memory of the mapped file that an address lies in; nothing where there is none."""
    mapping = _mapping(address)
    memory = None if mapping is None else mapping.memory()
    if memory is not None and hasattr(mmap, "MADV_DONTNEED"):
        memory.madvise(mmap.MADV_DONTNEED)


def incomplete_file(tensor: Tensor) -> tuple[Path, int] | None:
    """Path and place of a tensor of `map_temporary` whose file has not been renamed yet; None for others."""
    mapping = _mapping(tensor.data_ptr())
    if mapping is None or mapping.path is None or not mapping.path.exists():
        return None
    return mapping.path, mapping.offset


def _open(path: Path, access: int, size: int) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), size, access=access)


def _mapped(
    memory: mmap.mmap, dtype: torch.dtype, shape: tuple[int, ...], offset: int, path: Path | None = None
) -> Tensor:
    tensor = torch.frombuffer(memory, dtype=dtype, count=prod(shape), offset=offset).view(shape)
    begin = tensor.data_ptr() - offset
    reference = weakref.ref(memory, lambda _: _MAPPINGS.pop(begin, None))
    _MAPPINGS[begin] = Mapping(begin + len(memory), reference, path, offset)
    return tensor


def _mapping(address: int) -> Mapping | None:
    for begin, mapping in list(_MAPPINGS.items()):
        if begin <= address < mapping.end:
            return mapping
    return None
