"""Lossless compression of tensors: difference of bit patterns to another tensor, bytes in planes, zstd.

    k = bits(x) - bits(base) as integers, z = 2 k or -2 k - 1 (small for small |k|), then the lowest bytes of all
    numbers, the next ones, and so on; each plane is one zstd frame.

A model after local training differs from its start in the lower half of each number's bits: the two upper planes shrink
to almost nothing, the two lower ones are noise and keep their size.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from torch import Tensor

from drift.store.row_matrices import release
from landscape.model import mapped_files

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BASES = {"clients": "start", "end": "start", "client_deltas": None}
"""Compressed tensors, with the tensor that each is stored as the difference to; `carried.*` and `sent.*` are too."""

_LEAST = 256
"""Count of numbers below which compression saves nothing."""

_INTEGERS: dict[int, np.dtype[Any]] = {2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64)}
_LEVEL = 1


_UNFIT = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, MemoryError, OverflowError)


class NotDecompressible(ValueError):
    """A compressed tensor that was altered such that it cannot be decompressed."""


def compress(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors, large ones as bytes (n,), uint8, and the table that `decompress` needs."""
    stored, table = dict(tensors), {}
    for name, tensor in tensors.items():
        if not _is_compressible(name, tensor):
            continue
        base = BASES.get(name)
        if base is not None and (base not in tensors or tensors[base].dtype != tensor.dtype):
            base = None
        frames = _frames(tensor, None if base is None else _bits(tensors[base]))
        stored[name], lengths = _joined(frames, large=mapped_files.is_mapped(tensor))
        table[name] = {
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape),
            "base": base,
            "lengths": lengths,
        }
    return stored, table


def decompress(tensors: Mapping[str, Tensor], table: Mapping[str, Any]) -> dict[str, Tensor]:
    """Inverse of `compress`.

    Raises:
        NotDecompressible: If the bytes or the table do not fit each other; a digest finds other alterations.
    """
    decompressed = dict(tensors)
    try:
        for name, entry in table.items():
            dtype = getattr(torch, entry["dtype"])
            integer = _INTEGERS[dtype.itemsize]
            base = None if entry["base"] is None else _bits(tensors[entry["base"]])
            values = _values(tensors[name], entry["lengths"], tuple(entry["shape"]), integer, base)
            decompressed[name] = values.view(dtype)
    except (*_UNFIT, zstd.ZstdError) as reason:
        raise NotDecompressible(str(reason) or type(reason).__name__) from reason
    return decompressed


def _is_compressible(name: str, tensor: Tensor) -> bool:
    listed = name in BASES or name.startswith(("carried.", "sent."))
    return listed and tensor.is_floating_point() and tensor.ndim in (1, 2) and tensor.numel() >= _LEAST


def _bits(tensor: Tensor) -> np.ndarray:
    return tensor.contiguous().view(torch.uint8).numpy().view(_INTEGERS[tensor.element_size()])


def _frames(tensor: Tensor, base: np.ndarray | None) -> Iterator[bytes]:
    """One zstd frame per plane and row, lowest bytes first."""
    bits = _bits(tensor)
    for row in bits.reshape(-1, bits.shape[-1]):
        values = row if base is None else _zigzag(row - base)
        for plane in np.ascontiguousarray(values.view(np.uint8).reshape(len(values), -1).T):
            yield zstd.compress(plane.data, _LEVEL)
        release(tensor)


def _joined(frames: Iterable[bytes], *, large: bool) -> tuple[Tensor, list[int]]:
    """The frames one after the other as bytes (n,), in a temporary file if they are large, and their lengths."""
    if not large:
        all_frames = list(frames)
        return torch.frombuffer(bytearray().join(all_frames), dtype=torch.uint8), [len(frame) for frame in all_frames]
    with tempfile.NamedTemporaryFile() as file:
        lengths = [file.write(frame) for frame in frames]
        file.flush()
        return mapped_files.map_tensor(Path(file.name), torch.uint8, (sum(lengths),)), lengths


def _values(
    data: Tensor, lengths: list[int], shape: tuple[int, ...], integer: np.dtype[Any], base: np.ndarray | None
) -> Tensor:
    """The numbers as bytes, their last dimension `integer.itemsize` times as long as that of the tensor."""
    width, planes = shape[-1], integer.itemsize
    rows = int(np.prod(shape[:-1]))
    if len(lengths) != rows * planes or sum(lengths) != len(data) or min(lengths, default=1) < 1:
        raise ValueError("the lengths of its frames are wrong")
    if base is not None and len(base) != width:
        raise ValueError("it has another length than its base")
    size = rows, width * planes
    large = mapped_files.is_mapped(data)
    free = shutil.disk_usage(tempfile.gettempdir()).free if large else psutil.virtual_memory().available
    if rows * width * planes > free:
        raise ValueError(f"it states {rows * width * planes} bytes, more than are free")
    values = mapped_files.scratch_tensor(torch.uint8, size) if large else torch.empty(size, dtype=torch.uint8)
    numbers, encoded = values.numpy(), data.numpy()
    position = 0
    for index, length in enumerate(lengths):
        frame = zstd.ZstdDecompressor()
        plane = np.frombuffer(frame.decompress(encoded[position : position + length].data, width + 1), np.uint8)
        if not frame.eof or frame.unused_data or len(plane) != width:
            raise ValueError("a frame of it has another length than its numbers")
        numbers[index // planes].reshape(width, planes)[:, index % planes] = plane
        position += length
        if index % planes == planes - 1:
            if base is not None:
                row = numbers[index // planes].view(integer)
                row[:] = _unzigzag(row) + base
            release(values)
            release(data)
    return values.view(*shape[:-1], width * planes)


def _zigzag(k: np.ndarray) -> np.ndarray:
    """2 k where k >= 0, else -2 k - 1: small numbers for small differences of either sign."""
    sign = k >> (8 * k.itemsize - 1)
    return (k << 1) ^ sign


def _unzigzag(z: np.ndarray) -> np.ndarray:
    unsigned = z.view(z.dtype.str.replace("i", "u"))
    return (unsigned >> 1).view(z.dtype) ^ -(z & 1)
