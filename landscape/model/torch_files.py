"""Files of torch.save: their content as plain data, and the values of the tensors that are asked for."""

import io
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from landscape.model.guarded_load import Refused, require_room, require_zip
from landscape.model.inert_pickle import Inert, read_pickle

LEGACY = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""The magic number with which a file of torch.save before 1.6 begins, as it is pickled."""

PICKLE = 1 << 28
"""Largest size of the pickle beside the tensors, in bytes."""


@dataclass(frozen=True)
class Storage:
    """Numbers in a file: their key there, their type and how many there are."""

    key: str
    dtype: torch.dtype
    numel: int


@dataclass(frozen=True, eq=False)
class Stored:
    """A tensor that lies in a file: a view of a storage."""

    storage: Storage
    dtype: torch.dtype
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


Values = Callable[[Stored], Tensor]
"""Reads a tensor of a file."""


def read_zip(path: Path) -> tuple[Any, Values]:
    """Content of a file of torch.save, and what reads its tensors.

    Raises:
        ValueError: If it is damaged, or states more than it has.
    """
    require_zip(path)
    with zipfile.ZipFile(path) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
        (name,) = [name for name in sizes if name.rpartition("/")[2] == "data.pkl"][:1] or [""]
        if sizes.get(name, PICKLE + 1) > PICKLE:
            raise Refused(f"{path} has no pickle of at most {PICKLE} bytes; save model.state_dict().")
        folder = name.removesuffix("data.pkl")
        if f"{folder}byteorder" in sizes and archive.read(f"{folder}byteorder").decode() != sys.byteorder:
            raise Refused(f"{path} was written on a machine of another byte order; load it there and save it as .npz.")
        content = read_pickle(io.BytesIO(archive.read(name)), REBUILD, _storage)

    def bytes_of(storage: Storage) -> bytearray:
        member, size = f"{folder}data/{storage.key}", storage.numel * storage.dtype.itemsize
        if sizes.get(member) != size:
            raise Refused(f"{path}: {member} has {sizes.get(member)} bytes, its tensors state {size}.")
        with zipfile.ZipFile(path) as archive, archive.open(member) as file:
            return _filled(file, size)

    return content, _reader(bytes_of)


def read_legacy(path: Path) -> tuple[Any, Values]:
    """The same of a file as torch.save wrote it before 1.6: pickles, then the storages one after the other."""
    size = path.stat().st_size
    require_room(path, size)
    with open(path, "rb") as file:
        bounded = _Bounded(file, min(size, PICKLE))
        read_pickle(bounded, {}, _nothing)  # the magic number
        read_pickle(bounded, {}, _nothing)  # the version
        read_pickle(bounded, {}, _nothing)  # sizes of types
        storages: dict[str, Storage] = {}

        def noted(identifier: Any) -> Any:
            storage = _storage(identifier)
            return storages.setdefault(storage.key, storage) if isinstance(storage, Storage) else storage

        content, keys = read_pickle(bounded, REBUILD, noted), read_pickle(bounded, {}, _nothing)
        offsets = {}
        for key in keys if isinstance(keys, list) else ():
            storage, count = storages.get(str(key)), int.from_bytes(file.read(8), "little")
            if storage is None or count != storage.numel or file.tell() + count * storage.dtype.itemsize > size:
                raise Refused(f"{path}: a storage states {count} numbers, which it does not have; it is truncated.")
            offsets[storage.key] = file.tell()
            file.seek(count * storage.dtype.itemsize, io.SEEK_CUR)

    def bytes_of(storage: Storage) -> bytearray:
        with open(path, "rb") as file:
            file.seek(offsets[storage.key])
            return _filled(file, storage.numel * storage.dtype.itemsize)

    return content, _reader(bytes_of)


class _Bounded:
    """A file that is asked for no more bytes than it has: a pickle may state any length."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self.file, self.size = file, size

    def read(self, number: int) -> bytes:
        return self.file.read(max(0, min(number, self.size - self.file.tell())))

    def readline(self) -> bytes:
        return self.file.readline(max(0, self.size - self.file.tell()))


def _reader(bytes_of: Callable[[Storage], bytearray]) -> Values:
    read: dict[str, bytearray] = {}

    def tensor(stored: Stored) -> Tensor:
        key = stored.storage.key
        storage_bytes = read[key] = read[key] if key in read else bytes_of(stored.storage)
        flat = (
            torch.frombuffer(storage_bytes, dtype=stored.dtype) if storage_bytes else torch.empty(0, dtype=stored.dtype)
        )
        return flat.as_strided(stored.shape, stored.stride, stored.offset)

    return tensor


def _filled(file: IO[bytes], size: int) -> bytearray:
    storage_bytes = bytearray(size)
    view, done = memoryview(storage_bytes), 0
    while done < size and (number := file.readinto(view[done:])):  # type: ignore[attr-defined]
        done += number
    if done < size:
        raise ValueError("a part is shorter than stated")
    return storage_bytes


def _storage(identifier: Any) -> Any:
    """The storage that torch.save writes as ("storage", type, key, location, number); anything else is inert."""
    if isinstance(identifier, tuple) and len(identifier) in (5, 6) and identifier[0] == "storage":
        kind, key, number = identifier[1], identifier[2], identifier[4]
        dtype = _DTYPES.get(kind.name.rpartition(".")[2]) if isinstance(kind, Inert) else None
        view = identifier[5] if len(identifier) == 6 else None
        if dtype is not None and isinstance(key, str) and isinstance(number, int) and number >= 0 and view is None:
            return Storage(key, dtype, number)
    return Inert("a storage")


def _nothing(_: Any) -> Inert:
    return Inert("a storage")


def _tensor(storage: Any, offset: Any, shape: Any, stride: Any, *rest: Any) -> Any:
    return _view(storage, storage.dtype if isinstance(storage, Storage) else None, offset, shape, stride)


def _typed_tensor(
    storage: Any, offset: Any, shape: Any, stride: Any, grad: Any, hooks: Any, dtype: Any, *_: Any
) -> Any:
    kind = getattr(torch, dtype.name.removeprefix("torch."), None) if isinstance(dtype, Inert) else None
    return _view(storage, kind, offset, shape, stride)


def _view(storage: Any, dtype: Any, offset: Any, shape: Any, stride: Any) -> Any:
    numbers = (offset, *shape, *stride)
    if not isinstance(storage, Storage) or not isinstance(dtype, torch.dtype):
        return Inert("a tensor without a storage")
    if len(shape) != len(stride) or not all(isinstance(number, int) and 0 <= number < 1 << 62 for number in numbers):
        raise ValueError("a tensor states an impossible shape")
    last = offset + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    if prod(shape) and (last + 1) * dtype.itemsize > storage.numel * storage.dtype.itemsize:
        raise ValueError(f"a tensor exceeds its storage of {storage.numel} numbers")
    return Stored(storage, dtype, offset, tuple(shape), tuple(stride))


def _first(value: Any, *_: Any) -> Any:
    return value


def _of_type(function: Any, kind: Any, arguments: Any, *_: Any) -> Any:
    """A tensor of a subclass, made by another function of this table."""
    known = REBUILD.get(function.name) if isinstance(function, Inert) else None
    return Inert("a tensor") if known is None or known is _of_type else known(*arguments)


REBUILD: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _typed_tensor,
    "torch._utils._rebuild_parameter": _first,
    "torch._utils._rebuild_parameter_with_state": _first,
    "torch._tensor._rebuild_from_type_v2": _of_type,
    "torch.Size": _first,
}
"""What a pickle of torch.save calls to make its tensors."""

_DTYPES = {
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
    "ComplexFloatStorage": torch.complex64,
    "ComplexDoubleStorage": torch.complex128,
    "UntypedStorage": torch.uint8,
}
