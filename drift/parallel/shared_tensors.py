"""Values as a small text of bytes and their tensors, so that these travel, or are shared by processes, as they lie."""

from __future__ import annotations

import io
import os
import pickle
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, count
from typing import Any

import torch
from torch import Tensor

ALIGNED = 64
"""Bytes; where tensors begin in shared memory, as torch's own do: a product's bits may depend on it."""


def apart(value: Any) -> tuple[bytes, list[Tensor]]:
    """What `together` makes the value of again: its pickle without its tensors, and these."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(value)
    return file.getvalue(), [tensor.detach().cpu().contiguous() for tensor in pickler.tensors.values()]


def together(text: bytes, tensors: Sequence[Tensor]) -> Any:
    """The value that `apart` took apart; its tensors are those given."""
    unpickler = pickle.Unpickler(io.BytesIO(text))
    unpickler.persistent_load = tensors.__getitem__  # type: ignore[method-assign]
    return unpickler.load()


def packed(value: Any) -> bytes:
    """A value as one text of bytes, for a pipe."""
    text, tensors = apart(value)
    return pickle.dumps((text, [(_form(tensor), _bytes(tensor).numpy()) for tensor in tensors]), protocol=5)


def unpacked(text: bytes) -> Any:
    """The value that `packed` made bytes of."""
    inner, tensors = pickle.loads(text)
    return together(inner, [_formed(torch.from_numpy(held).clone(), form) for form, held in tensors])


class Region:
    """Memory that processes of this machine map by its path; it ends with this object and all who mapped it.

    Args:
        size: Bytes.
    """

    def __init__(self, size: int) -> None:
        self.size, self.named = max(1, size), not hasattr(os, "memfd_create")
        if self.named:  # not Linux
            self._file, self.path = tempfile.mkstemp(prefix="fedscape-")
        else:
            self._file = os.memfd_create("fedscape")
            self.path = f"/proc/{os.getpid()}/fd/{self._file}"
        os.truncate(self._file, self.size)

    def __enter__(self) -> Region:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """No process can map it from now on; those that did keep it."""
        os.close(self._file)
        if self.named:
            os.unlink(self.path)


def mapped(path: str, size: int, *, writable: bool = False) -> Tensor:
    """Bytes of a region, shape (size,); what is written elsewhere than in a writable one stays in this process."""
    return torch.from_file(path, shared=writable, size=size, dtype=torch.uint8)


@dataclass(frozen=True)
class Shared:
    """A value whose tensors lie in a region: small to send, and the same memory for everyone who opens it.

    Args:
        number: Different for every value that this process shares.
        text: The value without its tensors.
        path, size: The region.
        forms: Type and shape of each tensor.
    """

    number: int
    text: bytes
    path: str
    size: int
    forms: tuple[tuple[torch.dtype, tuple[int, ...]], ...]

    def opened(self) -> Any:
        """The value; its tensors may be written to and nobody else sees it."""
        held = mapped(self.path, self.size)
        sizes = [_size(form) for form in self.forms]
        return together(
            self.text,
            [
                _formed(held[begin : begin + size], form)
                for form, size, begin in zip(self.forms, sizes, _begins(sizes), strict=False)
            ],
        )


def share(value: Any) -> tuple[Shared, Region]:
    """A value in shared memory, as long as the region is open."""
    text, tensors = apart(value)
    forms = tuple(_form(tensor) for tensor in tensors)
    begins = _begins([_size(form) for form in forms])
    region = Region(begins[-1])
    memory = mapped(region.path, region.size, writable=True)
    for tensor, begin in zip(tensors, begins, strict=False):
        memory[begin : begin + tensor.nbytes].copy_(_bytes(tensor))
    return Shared(next(_NUMBERS), text, region.path, region.size, forms), region


_NUMBERS = count()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.tensors: dict[int, Tensor] = {}
        self._places: dict[int, int] = {}

    def persistent_id(self, value: Any) -> int | None:
        if type(value) is not Tensor:
            return None
        self.tensors.setdefault(id(value), value)
        return self._places.setdefault(id(value), len(self._places))


def _begins(sizes: Sequence[int]) -> list[int]:
    """Where each tensor begins, and where the last one ends."""
    return list(accumulate((-(-size // ALIGNED) * ALIGNED for size in sizes), initial=0))


def _form(tensor: Tensor) -> tuple[torch.dtype, tuple[int, ...]]:
    return tensor.dtype, tuple(tensor.shape)


def _size(form: tuple[torch.dtype, tuple[int, ...]]) -> int:
    return form[0].itemsize * int(torch.Size(form[1]).numel())


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def _formed(held: Tensor, form: tuple[torch.dtype, tuple[int, ...]]) -> Tensor:
    return held.view(form[0]).view(form[1])
