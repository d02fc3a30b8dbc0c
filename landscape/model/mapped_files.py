"""Tensors that lie in files and are read where they are used: mapped, and released once they were read.

Pages of a mapped file count as memory of the process until they are released; the file's content stays, and comes back
when it is read again.
"""

import itertools
import mmap
import os
import sys
import tempfile
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Mapping:
    """A mapped file: its addresses, the mapping and its descriptor.

    Args:
        path: Where it lies, if it is not complete yet.
    """

    begin: int
    end: int
    memory: weakref.ref[mmap.mmap]
    descriptor: int
    path: Path | None = None


_MAPPINGS: dict[int, Mapping] = {}
"""Mappings by number. An address names none: a thread may get one again before the mapping that had it is told gone."""

READERS = 8
"""Threads that read a block: a disk answers many requests at once sooner than one after the other."""

_NUMBERS = itertools.count()


def map_tensor(
    path: Path, dtype: torch.dtype, shape: tuple[int, ...], offset: int = 0, *, temporary: bool = False
) -> Tensor:
    """A tensor in a file, which `release` knows; what is written to it stays in this process, if at all.

    Args:
        temporary: The file is to be completed (`incomplete_file`), or is removed with the tensor.
    """
    with open(path, "rb") as file:
        memory = _map_copy(file.fileno(), offset + prod(shape) * dtype.itemsize)
        descriptor = os.dup(file.fileno())
    if temporary:
        weakref.finalize(memory, path.unlink, missing_ok=True)
    return _mapped(memory, descriptor, dtype, shape, offset, path if temporary else None)


def scratch_tensor(dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    """A tensor in a file without a name in the folder TMPDIR, gone with the tensor; writes to it reach the file.

    Raises:
        OSError: If the disk has no space for it, where the system can tell.
    """
    size = prod(shape) * dtype.itemsize
    with tempfile.TemporaryFile() as file:
        _take_space(file.fileno(), size)
        return _mapped(mmap.mmap(file.fileno(), size), os.dup(file.fileno()), dtype, shape, 0)


def _take_space(descriptor: int, size: int) -> None:
    """Make an empty file as large as stated, on disk too: a process that writes to a mapped page without room dies."""
    allocate: Any = getattr(os, "posix_fallocate", None)  # macOS and Windows have none
    if not size or allocate is None:
        os.truncate(descriptor, size)
        return
    try:
        allocate(descriptor, 0, size)
    except OSError as reason:
        reason.filename = tempfile.gettempdir()
        raise


def block_memory(dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    """A tensor of any content whose memory returns to the system when it is gone, unlike that of the heap."""
    memory = mmap.mmap(-1, max(1, prod(shape)) * dtype.itemsize)
    return torch.frombuffer(memory, dtype=dtype, count=prod(shape)).view(shape)


def read_columns(models: Tensor, columns: slice, block: Tensor) -> None:
    """Read columns of mapped models (m, d) into a block (m, w), without mapping their pages.

    Pages of a file may be mapped by 2 MiB at a time, which is several times what a block takes of each row.
    """
    mapping, read_at = _mapping(models.data_ptr()), getattr(os, "preadv", None)
    if mapping is None or read_at is None:  # Windows has none
        block.copy_(models[:, columns])
        return
    first = models.data_ptr() - mapping.begin + columns.start * models.element_size()

    def read(turn: int) -> None:
        for row in range(turn, len(models), READERS):
            data, offset = block[row].numpy().view("u1").data, first + row * models.stride(0) * models.element_size()
            while data.nbytes:
                count = read_at(mapping.descriptor, [data], offset)
                if count == 0:
                    raise OSError("a file of models ends early; it was changed while it was read.")
                data, offset = data[count:], offset + count

    with _no_more_than_asked_for(mapping.descriptor), ThreadPoolExecutor(READERS, "fedscape-read") as readers:
        list(readers.map(read, range(READERS)))


@contextmanager
def _no_more_than_asked_for(descriptor: int) -> Iterator[None]:
    """Context in which the system reads a file without what follows each piece, which belongs to another block."""
    if sys.platform == "linux" and hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        try:
            yield
        finally:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_NORMAL)
    else:
        yield


def is_mapped(tensor: Tensor) -> bool:
    """Whether a tensor lies in a file mapped by this module."""
    return tensor.device.type == "cpu" and tensor.numel() > 0 and _mapping(tensor.data_ptr()) is not None


def release(address: int) -> None:
    """Free the memory of the mapped file that an address lies in; nothing where there is none."""
    mapping = _mapping(address)
    memory = None if mapping is None else mapping.memory()
    if memory is not None and hasattr(memory, "madvise") and hasattr(mmap, "MADV_DONTNEED"):
        memory.madvise(mmap.MADV_DONTNEED)


def incomplete_file(tensor: Tensor) -> tuple[Path, int] | None:
    """Path and place of a temporary tensor (`map_tensor`) whose file has not been renamed yet; None for others."""
    mapping = _mapping(tensor.data_ptr())
    if mapping is None or mapping.path is None or not mapping.path.exists():
        return None
    return mapping.path, tensor.data_ptr() - mapping.begin


def open_file(tensor: Tensor) -> tuple[Path, int] | None:
    """Path by which other processes of this machine can map the file of a tensor, and its place in it.

    The path is that of the open file, which may have no name, and is valid as long as the tensor lives in this process.
    None for a tensor that lies in no mapped file, and where the system has no such paths.
    """
    mapping = _mapping(tensor.data_ptr()) if tensor.device.type == "cpu" and tensor.numel() else None
    path = None if mapping is None else Path(f"/proc/{os.getpid()}/fd/{mapping.descriptor}")
    return (path, tensor.data_ptr() - mapping.begin) if mapping and path and path.exists() else None


def _map_copy(descriptor: int, size: int) -> mmap.mmap:
    """A mapped file whose content stays when the memory is written to.

    Linux refuses one that is larger than all memory, as if every page were to be written, unless it is told not to
    reserve any.
    """
    if not sys.platform.startswith("linux"):
        return mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)
    flags, protection = mmap.MAP_PRIVATE | _NORESERVE, mmap.PROT_READ | mmap.PROT_WRITE
    return mmap.mmap(descriptor, size, flags=flags, prot=protection)


_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
"""Of Linux on x86 and ARM; `mmap` names it from Python 3.13 on."""


def _mapped(
    memory: mmap.mmap,
    descriptor: int,
    dtype: torch.dtype,
    shape: tuple[int, ...],
    offset: int,
    path: Path | None = None,
) -> Tensor:
    tensor = torch.frombuffer(memory, dtype=dtype, count=prod(shape), offset=offset).view(shape)
    begin, number = tensor.data_ptr() - offset, next(_NUMBERS)
    weakref.finalize(memory, os.close, descriptor)
    reference = weakref.ref(memory, lambda _: _MAPPINGS.pop(number))
    _MAPPINGS[number] = Mapping(begin, begin + len(memory), reference, descriptor, path)
    return tensor


def _mapping(address: int) -> Mapping | None:
    """The mapping of the file that an address lies in."""
    for mapping in list(_MAPPINGS.values()):
        if mapping.begin <= address < mapping.end and mapping.memory() is not None:
            return mapping
    return None
