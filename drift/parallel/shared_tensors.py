"""Serialise objects so that their tensors can be sent to processes or shared with them without copies."""

import atexit
import io
import os
import pickle
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, count
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from landscape.model import mapped_files

ALIGNED = 64
"""Bytes; tensors in shared memory begin at multiples of it, as torch allocates: a product's bits may depend on it."""


def pickle_without_tensors(value: Any) -> tuple[bytes, list[Tensor]]:
    """Split a value into its pickle without tensors, and its tensors; inverse: `unpickle_with_tensors`."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(value)
    return file.getvalue(), [tensor.detach().cpu().contiguous() for tensor in pickler.tensors.values()]


def unpickle_with_tensors(text: bytes, tensors: Sequence[Tensor]) -> Any:
    """Inverse of `pickle_without_tensors`; the value has these very tensors."""
    unpickler = pickle.Unpickler(io.BytesIO(text))
    unpickler.persistent_load = tensors.__getitem__  # type: ignore[method-assign]
    return unpickler.load()


def serialize(value: Any) -> bytes:
    """A value as bytes, for a pipe."""
    text, tensors = pickle_without_tensors(value)
    return pickle.dumps((text, [(_form(tensor), _bytes(tensor).numpy()) for tensor in tensors]), protocol=5)


def deserialize(data: bytes) -> Any:
    """Inverse of `serialize`."""
    text, tensors = pickle.loads(data)
    return unpickle_with_tensors(text, [_view(torch.from_numpy(raw).clone(), form) for form, raw in tensors])


class MemoryRegion:
    """Memory that processes of this machine map by its path; freed when it and all mappings are closed.

    Args:
        size: Bytes.
    """

    def __init__(self, size: int) -> None:
        self.size, self.on_disk = max(1, size), not hasattr(os, "memfd_create")
        if hasattr(os, "memfd_create"):
            self._file = os.memfd_create("fedscape")
            self.path = f"/proc/{os.getpid()}/fd/{self._file}"
        else:  # not Linux
            self._file, self.path = tempfile.mkstemp(prefix="fedscape-")
        os.truncate(self._file, self.size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Allow no further mappings; existing ones stay."""
        os.close(self._file)
        if self.on_disk:
            _remove(self.path)


def _remove(path: str) -> None:
    """Remove a file; Windows refuses while it is mapped, and it is tried again when this process ends."""
    try:
        os.unlink(path)
    except PermissionError:
        atexit.register(_remove_at_last, path)


def _remove_at_last(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def map_memory(path: str, size: int, *, writable: bool = False) -> Tensor:
    """Bytes of a region, shape (size,); writes reach other processes only if it is writable."""
    return torch.from_file(path, shared=writable, size=size, dtype=torch.uint8)


class _Span(NamedTuple):
    """Where a tensor of a shared value begins: in a mapped file, or for None in the memory region."""

    form: tuple[torch.dtype, tuple[int, ...]]
    begin: int
    file: Path | None = None


@dataclass(frozen=True)
class SharedValue:
    """A value whose tensors lie in a memory region, or in mapped files: small to send, and the same in all processes.

    Args:
        number: Number of the value, unique in this process.
        text: Pickle of the value without its tensors.
        path, size: The memory region.
        spans: Type, shape and place of each tensor.
    """

    number: int
    text: bytes
    path: str
    size: int
    spans: tuple[_Span, ...]

    def load(self) -> Any:
        """The value; writes to its tensors stay in this process."""
        memory = map_memory(self.path, self.size)
        return unpickle_with_tensors(self.text, [_load(span, memory) for span in self.spans])


def _load(span: _Span, memory: Tensor) -> Tensor:
    if span.file is not None:
        return mapped_files.map_tensor(span.file, *span.form, span.begin)
    size = span.form[0].itemsize * torch.Size(span.form[1]).numel()
    return _view(memory[span.begin : span.begin + size], span.form)


def share_memory(value: Any) -> tuple[SharedValue, MemoryRegion]:
    """Copy the tensors of a value into shared memory, which lasts as long as the region is open.

    Those in mapped files are not copied: other processes map the files. The value must live as long as the region.
    """
    text, tensors = pickle_without_tensors(value)
    files = [mapped_files.open_file(tensor) for tensor in tensors]
    begins = _offsets([0 if file else tensor.nbytes for tensor, file in zip(tensors, files, strict=True)])
    region = MemoryRegion(begins[-1])
    memory = map_memory(region.path, region.size, writable=True)
    spans = []
    for tensor, begin, file in zip(tensors, begins, files, strict=False):
        if file is None:
            memory[begin : begin + tensor.nbytes].copy_(_bytes(tensor))
        spans.append(_Span(_form(tensor), begin) if file is None else _Span(_form(tensor), file[1], file[0]))
    return SharedValue(next(_NUMBERS), text, region.path, region.size, tuple(spans)), region


_NUMBERS = count()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.tensors: dict[int, Tensor] = {}
        self._numbers: dict[int, int] = {}

    def persistent_id(self, value: Any) -> int | None:
        if type(value) is not Tensor:
            return None
        self.tensors.setdefault(id(value), value)
        return self._numbers.setdefault(id(value), len(self._numbers))


def _offsets(sizes: Sequence[int]) -> list[int]:
    """Offset of each tensor, and of the end of the last one."""
    return list(accumulate((-(-size // ALIGNED) * ALIGNED for size in sizes), initial=0))


def _form(tensor: Tensor) -> tuple[torch.dtype, tuple[int, ...]]:
    return tensor.dtype, tuple(tensor.shape)


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def _view(raw: Tensor, form: tuple[torch.dtype, tuple[int, ...]]) -> Tensor:
    return raw.view(form[0]).view(form[1])
